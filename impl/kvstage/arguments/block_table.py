"""Block tables: which blocks the rows [start, stop) touch, checked before anything moves."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import BlockIdError, DeviceError, DuplicateBlockError, LayoutError, RangeError, TableTooShortError, shown
from ..pool import PagedPool, has_memory, is_plain

BlockTable: TypeAlias = Sequence[int] | NDArray[np.int32] | NDArray[np.int64] | torch.Tensor
"""Block ids, one a block of the sequence: a list, or a numpy or CPU torch array of int32 or int64. Padding behind the
blocks that a call touches is not looked at."""

MOST_ROWS = 2**63 - 1
"""What a row number can be at most: those of kernels are int64."""
_DTYPES: tuple[Any, ...] = (np.dtype(np.int32), np.dtype(np.int64), torch.int32, torch.int64)


def row_range(start: int, stop: int) -> tuple[int, int]:
    """The two as ints. Raises RangeError unless 0 <= start <= stop."""
    start, stop = _number("start", start), _number("stop", stop)
    if start < 0:
        raise RangeError(f"start is {start}: rows are counted from 0")
    if stop < start:
        raise RangeError(f"rows [{start}, {stop}) end before they start: stop must be at least start")
    return start, stop


def _number(name: str, value: Any) -> int:
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        raise RangeError(f"{name} is a tensor on {value.device}, and reading it would wait for that device: pass an integer")
    try:
        number = index(value)
    except (TypeError, RuntimeError) as error:  # the second, of a tensor that has no value
        raise RangeError(f"{name} is {shown(value)}: it must be an integer") from error
    if abs(number) > MOST_ROWS:
        raise RangeError(f"{name} is {shown(number)}: no sequence has so many rows")
    return number


@dataclass(frozen=True, slots=True, eq=False)
class TouchedBlocks:
    """The pool's block for each block of the sequence that a call touches: `first` and those after it, and no others."""

    first: int
    listed: bytes
    num_blocks: int
    distinct: bool
    ids: NDArray[np.int64]
    by_number: dict[int, int]

    def are(self, first: int, ids: bytes, num_blocks: int, distinct: bool) -> bool:
        """Whether they are these, int64 by int64, of so large a pool, and known to be distinct if they must be."""
        known = self.distinct or not distinct
        return known and self.listed == ids and self.first == first and self.num_blocks == num_blocks

    def __call__(self, k: Any) -> Any:
        """The block id for block `k` of the sequence, or an array of ids for an array of such numbers."""
        if isinstance(k, np.ndarray):
            places = k - self.first
            if len(places) and places.min() < 0:  # it would count from the end, and name another block
                raise IndexError(f"block {k.min()} of the sequence lies before those that the call touches, from {self.first} on")
            return self.ids[places]
        return self.by_number[k]


def touched_blocks(
    pool: PagedPool, table: BlockTable, start: int, stop: int, *, distinct: bool, last: TouchedBlocks | None = None
) -> TouchedBlocks:
    """The blocks that rows [start, stop) touch; the rest of the table is not read.

    Where they are those of `last`, which were checked when they were found, that object is returned. Raises
    TableTooShortError, BlockIdError, LayoutError or DeviceError, and DuplicateBlockError if `distinct`.
    """
    length = table_length(table)
    size = pool.block_size
    first = start // size
    listed, chosen = b"", table[:0]
    if start < stop:
        end = (stop - 1) // size + 1
        if length < end:
            raise TableTooShortError(
                f"rows [{start}, {stop}) need {end} blocks of {size} rows, and the block table has {length}: "
                "pass all blocks of the sequence, from its row 0 on"
            )
        chosen = table[first:end] if first or end < length else table
        listed = _int64s(pool, chosen, first)
        if len(listed) != 8 * (end - first):
            raise TableTooShortError(
                f"the block table says that it has {length} entries, and a slice of {end - first} of them has {len(listed) // 8}: "
                "pass a list, or an array"
            )
        if last is not None and last.are(first, listed, pool.num_blocks, distinct):
            return last
    if not isinstance(chosen, np.ndarray | torch.Tensor):
        _refuse_tensors(chosen)
    found = np.frombuffer(listed, np.int64)
    ids: list[int] = found.tolist()
    if ids and (min(ids) < 0 or max(ids) >= pool.num_blocks):
        _refuse_block(pool, ids, first)
    blocks = dict(enumerate(ids, first))
    if distinct and len(set(ids)) < len(ids):
        _refuse_duplicate(blocks)
    return TouchedBlocks(first, listed, pool.num_blocks, distinct, found, blocks)


def _int64s(pool: PagedPool, chosen: Any, first: int) -> bytes:
    """Entries of a table, from its entry `first` on, as the bytes of int64. Raises BlockIdError if one is no integer."""
    if isinstance(chosen, torch.Tensor):
        chosen = chosen.numpy()
    if isinstance(chosen, np.ndarray):
        return chosen.astype(np.int64, copy=False).tobytes()
    if type(chosen[0]) is not int or type(chosen[-1]) is not int:
        _refuse_tensors((chosen[0], chosen[-1]))  # all of them are looked at where the table is a new one
    try:
        # unlike numpy, it takes no 1.0 for a 1; of other sequences it might take their memory
        return array("q", chosen if isinstance(chosen, list | tuple) else list(chosen)).tobytes()
    except (TypeError, OverflowError):
        _refuse_block(pool, chosen, first)
        raise


def table_length(table: Any) -> int:
    """How many entries a block table has. Raises LayoutError or DeviceError if it is none that the library takes."""
    if isinstance(table, np.ndarray | torch.Tensor):
        if isinstance(table, torch.Tensor) and not is_plain(table):
            raise LayoutError(f"the block table is {table.layout}, or nested: pass a dense tensor of one dimension")
        if isinstance(table, torch.Tensor) and table.device.type != "cpu":
            raise DeviceError(f"the block table is on {table.device}, and reading it would wait for that device: pass a CPU copy")
        if table.ndim != 1 or table.dtype not in _DTYPES:
            shape = list(table.shape)
            raise LayoutError(f"the block table is {table.dtype} of shape {shape}: it must be int32 or int64, of one dimension")
        if isinstance(table, torch.Tensor) and not has_memory(table):
            raise LayoutError(f"the block table is a {type(table).__name__} without memory of its own: pass the ids themselves")
    elif not isinstance(table, Sequence) or isinstance(table, str | bytes):
        raise LayoutError(f"the block table is a {type(table).__name__}: pass a list, or a numpy or torch array, of block ids")
    elif not isinstance(table, list | tuple):
        _check_slices(table)
    return len(table)


def _check_slices(table: Sequence[Any]) -> None:
    try:
        table[:0]
    except TypeError as error:
        raise LayoutError(
            f"the block table is a {type(table).__name__}, which has no slices such as table[2:5]: pass list(table), or an array"
        ) from error


def _refuse_tensors(entries: Iterable[Any]) -> None:
    """Raises LayoutError if there is a tensor among them: to read the number of one waits for its device."""
    if any(issubclass(kind, torch.Tensor) for kind in set(map(type, entries))):
        raise LayoutError(
            "the block table lists tensors, and reading each of them would wait for its device: pass integers, or one CPU tensor "
            "with all block ids, such as torch.stack(list(table)).cpu()"
        )


def _refuse_block(pool: PagedPool, ids: Sequence[Any], first: int) -> None:
    for k, block in enumerate(ids, first):
        try:
            number = index(block)
        except TypeError as error:
            raise BlockIdError(f"block table entry {k} is {shown(block)}: block ids are integers") from error
        if not 0 <= number < pool.num_blocks:
            raise BlockIdError(
                f"block table entry {k} is {shown(number)}, and {pool} has blocks 0 to {pool.num_blocks - 1}: "
                f"rows {k * pool.block_size} to {(k + 1) * pool.block_size - 1} of the sequence have no block"
            )


def _refuse_duplicate(blocks: dict[int, int]) -> None:
    seen: dict[int, int] = {}
    for k, block in blocks.items():
        if block in seen:
            raise DuplicateBlockError(
                f"block {block} is both entry {seen[block]} and entry {k} of the block table: a write would put two rows into one; "
                "give each entry a block of its own"
            )
        seen[block] = k
