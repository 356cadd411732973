"""What happened to each block of the pools that share a block table: rows written, sequences cut, blocks given away."""

from operator import index

import numpy as np
from numpy.typing import NDArray

from kvstage_model.tier import Block, cut, rewritten

from ..arguments.block_table import BlockTable, row_range
from ..errors import BlockIdError, RangeError, TableTooShortError


class BlockVersions:
    """Generations of `num_blocks` blocks of `block_size` rows, for all pools whose rows are written together.

    Whoever writes rows of a pool says so here, before the next read of the tier: `written` for rows of a sequence, new or in
    place; `cut` when a sequence gets shorter; `freed` when blocks go back to the allocator, and may go to another sequence.
    Sequences may share blocks: what one does to a block counts for all. Not for several threads at once.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks, self.block_size = _positive("num_blocks", num_blocks), _positive("block_size", block_size)
        self._blocks = [Block(0, 0, 0)] * self.num_blocks
        self._changed = np.zeros(self.num_blocks, np.int64)
        self._now = 0

    @property
    def now(self) -> int:
        """How many changes there were so far."""
        return self._now

    def block(self, number: int) -> Block:
        """What is known of a block."""
        return self._blocks[number]

    def changed_since(self, numbers: NDArray[np.int64], before: int) -> NDArray[np.bool_]:
        """Of each of these blocks, whether anything happened to it after `now` was `before`."""
        changed: NDArray[np.bool_] = self._changed[numbers] > before
        return changed

    def written(self, block_table: BlockTable, start: int, stop: int) -> None:
        """Rows [start, stop) of a sequence were written, or will be before they are read. Raises as `Stager.write` does."""
        start, stop = row_range(start, stop)
        size = self.block_size
        numbers = self.numbers(block_table, stop)
        for place in range(start // size, -(-stop // size) if stop > start else start // size):
            first = place * size
            self._set(numbers[place], rewritten(self._blocks[numbers[place]], max(start - first, 0), min(stop - first, size)))

    def cut(self, block_table: BlockTable, length: int) -> None:
        """The sequence ends after its first `length` rows; the rest of its table may be written anew."""
        length, _ = row_range(length, length)
        numbers = self.numbers(block_table, None)
        for place in range(length // self.block_size, len(numbers)):
            self._set(numbers[place], cut(self._blocks[numbers[place]], max(length - place * self.block_size, 0)))

    def freed(self, blocks: BlockTable) -> None:
        """Blocks hold no sequence's rows any more."""
        for number in self.numbers(blocks, None):
            self._set(number, cut(self._blocks[number], 0))

    def numbers(self, block_table: BlockTable, length: int | None) -> NDArray[np.int64]:
        """The blocks of the first `length` rows, or all up to the first -1: int64 [n].

        Raises TableTooShortError if there are fewer, BlockIdError if one is no block.
        """
        try:
            numbers = np.asarray(block_table)
            if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
                raise TypeError("no integers in a row")
        except (TypeError, ValueError) as error:
            raise BlockIdError(f"the block table is {block_table!r}: pass a list of block ids, one for each block") from error
        numbers = numbers.astype(np.int64)
        if length is None:
            padding = np.flatnonzero(numbers == -1)
            numbers = numbers[: padding[0]] if len(padding) else numbers
        else:
            needed = -(-length // self.block_size)
            if len(numbers) < needed:
                raise TableTooShortError(f"the block table has {len(numbers)} blocks, and {length} rows take {needed}")
            numbers = numbers[:needed]
        wrong = numbers[(numbers < 0) | (numbers >= self.num_blocks)]
        if len(wrong):
            raise BlockIdError(f"block {wrong[0]} is not in a pool of {self.num_blocks} blocks")
        return numbers

    def _set(self, number: int, block: Block) -> None:
        self._now += 1
        self._blocks[number] = block
        self._changed[number] = self._now


def _positive(name: str, value: object) -> int:
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise RangeError(f"{name} is {value!r}: it must be an integer from 1 on") from error
    if number < 1:
        raise RangeError(f"{name} is {number}: it must be at least 1")
    return number
