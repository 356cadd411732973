"""Gather and scatter on host memory: whole blocks at once where the rows allow it, in the widest element that fits.

Both move raw bytes, and both check every block id themselves, although the library has done so before.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from .device import Index

Bytes: TypeAlias = NDArray[np.uint8]

_ELEMENTS: tuple[tuple[int, Any, torch.dtype], ...] = (
    (16, np.complex128, torch.complex128),
    (8, np.int64, torch.int64),
    (4, np.int32, torch.int32),
    (2, np.int16, torch.int16),
    (1, np.uint8, torch.uint8),
)
"""Bytes of an element, and its type: the fewer elements, the faster, and none of these changes a bit on its way."""

_ONE_THREAD = 32_767
"""Elements of one call of torch: from 32,768 on it starts threads of its own, which beside busy ones costs up to 30 flat copies."""


def gather(source: Bytes, index: Index, target: Bytes) -> None:
    """Row i of `target` [n, row_bytes] becomes row `index[i]` of the pool `source` [slots, rows, row_bytes]."""
    size, row_bytes = source.shape[1:]
    for first, last, whole in _parts(index, size):
        if not whole:
            slots, rows = np.divmod(index[first:last], size)
            target[first:last] = source[slots, rows]
            continue
        slots = index[first:last:size] // size
        blocks, packed, dtype = _widest(source, target[first:last].reshape(len(slots), size * row_bytes))
        pool, places, ids = torch.from_numpy(blocks).view(dtype), torch.from_numpy(packed).view(dtype), torch.from_numpy(slots)
        at_once = max(1, _ONE_THREAD // places.shape[1])
        for k in range(0, len(ids), at_once):
            torch.index_select(pool, 0, ids[k : k + at_once], out=places[k : k + at_once])


def scatter(source: Bytes, target: Bytes, index: Index) -> None:
    """Row i of `source` [n, row_bytes] goes to row `index[i]` of the pool `target` [slots, rows, row_bytes]."""
    size, row_bytes = target.shape[1:]
    for first, last, whole in _parts(index, size):
        if whole:
            slots = index[first:last:size] // size
            blocks, packed, _ = _widest(target, source[first:last].reshape(len(slots), size * row_bytes))
            blocks[slots] = packed
        else:
            slots, rows = np.divmod(index[first:last], size)
            target[slots, rows] = source[first:last]


def _parts(index: Index, size: int) -> Iterator[tuple[int, int, bool]]:
    """Cuts an index into the rows before the first block's begin, whole blocks, and the rest: first, last, whether whole."""
    length = len(index)
    head = min(length, int(-index[0] % size)) if length else 0
    body = head + (length - head) // size * size
    lines = index[head:body].reshape(-1, size)
    if (lines[:, 0] % size).any() or (lines != lines[:, :1] + np.arange(size)).any():  # not rows of blocks, in order
        head = body = length
    for first, last, whole in ((0, head, False), (head, body, True), (body, length, False)):
        if first < last:
            yield first, last, whole


def _widest(pool: Bytes, packed: Bytes) -> tuple[NDArray[Any], NDArray[Any], torch.dtype]:
    """A pool as [slots, elements], and rows packed in blocks, both in the widest element that their addresses allow."""
    shape, strides = (pool.shape[0], packed.shape[1]), (pool.strides[0], 1)
    blocks = np.lib.stride_tricks.as_strided(pool, shape, strides)  # reshape might copy, and lose what is written
    numbers = (packed.shape[1], pool.strides[0], pool.ctypes.data, packed.ctypes.data)
    for size, element, dtype in _ELEMENTS:
        if not any(number % size for number in numbers):
            return blocks.view(element), packed.view(element), dtype
    raise AssertionError("every address is a multiple of 1")
