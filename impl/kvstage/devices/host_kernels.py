"""Gather and scatter on host memory: whole blocks at once if the rows allow it.

Both move raw bytes on the calling thread, and both check every block id themselves, although the library has done so
before: numpy would count a negative one from the end, and `take` clips one that is too large.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .device import Index
from .row_cache import unchanging

Bytes: TypeAlias = NDArray[np.uint8]

Blocks: TypeAlias = NDArray[np.void]
"""A block for an element: numpy moves each in one piece."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexRun:
    """Rows [first, last) of an index: the slots and rows that they are, None for all rows of each slot; the least and most slot."""

    first: int
    last: int
    slots: Index
    rows: Index | None
    least: int
    most: int


_ELEMENTS: tuple[tuple[int, Any], ...] = ((16, np.complex128), (8, np.int64), (4, np.int32), (2, np.int16), (1, np.uint8))
"""Bytes of an element, and its type: the fewer elements, the faster, and none of these changes a bit on its way."""

_ONE_THREAD = 32_767
"""Elements of one call of torch: from 32,768 on it starts threads of its own, which beside busy ones costs up to 30 flat copies."""


class HostKernels:
    """The kernels of one device. The last index that was cut into blocks is remembered: all caches of a step have one."""

    def __init__(self) -> None:
        self._last: tuple[Index, int, list[IndexRun]] | None = None

    def gather(self, source: Bytes, index: Index, target: Bytes) -> None:
        """Row i of `target` [n, row_bytes] becomes row `index[i]` of the pool `source` [slots, rows, row_bytes]."""
        for part in self._parts(index, source):
            rows = target[part.first : part.last]
            if part.rows is not None:
                rows[...] = source[part.slots, part.rows]
            elif source.flags.c_contiguous:
                _blocks(source).take(part.slots, out=_packed(rows, part), mode="clip")
            else:
                _select(source, part.slots, rows.reshape(len(part.slots), -1))

    def scatter(self, source: Bytes, target: Bytes, index: Index) -> None:
        """Row i of `source` [n, row_bytes] goes to row `index[i]` of the pool `target` [slots, rows, row_bytes]."""
        for part in self._parts(index, target):
            rows = source[part.first : part.last]
            if part.rows is not None:
                target[part.slots, part.rows] = rows
            else:
                _blocks(target)[part.slots] = _packed(rows, part)

    def _parts(self, index: Index, pool: Bytes) -> list[IndexRun]:
        """The parts of an index. Raises IndexError if one reaches beyond the pool, before any is moved."""
        size, last = pool.shape[1], self._last
        if last is not None and last[0] is index and last[1] == size:
            parts = last[2]
        else:
            parts = list(_cut(index, size))
            if unchanging(index):
                self._last = index, size, parts
        for part in parts:
            if part.least < 0 or part.most >= len(pool):
                raise IndexError(f"blocks {part.least} to {part.most} of a pool of {len(pool)}")
        return parts


def _blocks(pool: Bytes) -> Blocks:
    """A pool as one element a block."""
    slots, block = len(pool), prod(pool.shape[1:])
    if pool.flags.c_contiguous:
        return np.ndarray((slots,), _element(block), pool)
    rows = np.lib.stride_tricks.as_strided(pool, (slots, block), (pool.strides[0], 1))  # reshape might copy
    items: Blocks = rows.view(_element(block))[:, 0]
    return items


def _packed(rows: Bytes, part: IndexRun) -> Blocks:
    """Rows that lie side by side, as one element for each block of the part."""
    slots = len(part.slots)
    return np.ndarray((slots,), _element(rows.size // slots), rows)


@lru_cache(maxsize=16)
def _element(size: int) -> np.dtype[np.void]:
    return np.dtype((np.void, size))


def _select(source: Bytes, slots: Index, packed: Bytes) -> None:
    """What `take` does, of a pool with gaps between its blocks: that would copy all of it first."""
    pool, places, ids = *map(torch.from_numpy, _widest(source, packed)), torch.from_numpy(slots)
    at_once = max(1, _ONE_THREAD // places.shape[1])
    for k in range(0, len(ids), at_once):
        torch.index_select(pool, 0, ids[k : k + at_once], out=places[k : k + at_once])


def _cut(index: Index, size: int) -> Iterator[IndexRun]:
    """Cuts an index into the rows before the first block's begin, whole blocks, and the rest."""
    length = len(index)
    head = min(length, int(-index[0] % size)) if length else 0
    body = head + (length - head) // size * size
    lines = index[head:body].reshape(-1, size)
    if (lines[:, 0] % size).any() or (lines != lines[:, :1] + np.arange(size)).any():  # not rows of blocks, in order
        head = body = length
    if head:
        yield _part(0, head, *np.divmod(index[:head], size))
    if head < body:
        yield _part(head, body, index[head:body:size] // size, None)
    if body < length:
        yield _part(body, length, *np.divmod(index[body:], size))


def _part(first: int, last: int, slots: Index, rows: Index | None) -> IndexRun:
    return IndexRun(first, last, slots, rows, int(slots.min()), int(slots.max()))


def _widest(pool: Bytes, packed: Bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    """A pool as [slots, elements], and rows packed in blocks, both in the widest element that their addresses allow."""
    shape, strides = (pool.shape[0], packed.shape[1]), (pool.strides[0], 1)
    blocks = np.lib.stride_tricks.as_strided(pool, shape, strides)  # reshape might copy, and lose what is written
    numbers = (packed.shape[1], pool.strides[0], pool.ctypes.data, packed.ctypes.data)
    for size, element in _ELEMENTS:
        if not any(number % size for number in numbers):
            return blocks.view(element), packed.view(element)
    raise AssertionError("every address is a multiple of 1")
