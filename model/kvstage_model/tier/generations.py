"""Generations of a block, and what a mirror of it still holds right.

A mirror is a copy of a block's rows in other memory: the host's copy of a device block, or the other way round. Of each block is
known how many rows were written, and a generation that grows whenever rows that had been written may have changed. A mirror
remembers which block it was made of, in which generation, and how many rows of it are right. What must move again is what
`still_right` leaves out: rows that the block gained, and rows that may have changed.

These functions are run by the library, and proved as they stand for all sizes (theorem H1).
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Block:
    """What is known of a block: its generation, the rows that are as they were in the generation before, and the rows written.

    Rows 0 to written - 1 hold something; rows 0 to kept - 1 were not changed when the generation began. kept <= written.
    """

    generation: int
    kept: int
    written: int


@dataclass(frozen=True, eq=False)
class Mirror:
    """What a mirror holds: the first `right` rows of block number `block`, as they were in a generation of it."""

    block: int
    generation: int
    right: int


def rewritten(block: Block, start: int, stop: int) -> Block:
    """A block after its rows [start, stop) were written, start <= stop: appended to those it had, or in their place."""
    if start >= block.written:
        return Block(block.generation, block.kept, stop)
    return Block(block.generation + 1, start, max(block.written, stop))


def cut(block: Block, length: int) -> Block:
    """A block of which the first `length` rows stay, as after a truncation; 0 of them if it goes to another owner."""
    if length >= block.written:
        return block
    return Block(block.generation + 1, length, length)


def still_right(mirror: Mirror, number: int, block: Block) -> int:
    """How many rows of a mirror are, from the first on, those of block `number`, of which this is known now."""
    if mirror.block != number:
        return 0
    if mirror.generation == block.generation:
        return mirror.right
    if mirror.generation + 1 == block.generation:
        return min(mirror.right, block.kept)
    return 0


def mirrored(mirror: Mirror, number: int, block: Block, wanted: int) -> Mirror:
    """A mirror after the rows from `still_right` up to `wanted` were moved to it; none if it had as many."""
    return Mirror(number, block.generation, max(still_right(mirror, number, block), wanted))
