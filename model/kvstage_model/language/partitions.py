"""Partitions: the rows [start, stop) of one sequence in a paged pool, cut into parts that are moved one after the other.

A scheme does not care how they were cut. Each partition here is proved to fulfil one contract (`contract`), and a scheme
proved over any parts that fulfil it holds for every partition that does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .fast_dataclass import fast_dataclass
from .paged_rows import PagedRows
from .ranges import Positive


@fast_dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """`count` rows of a transfer, from its row `position` on."""

    position: int
    count: int


@fast_dataclass(frozen=True, slots=True, eq=False)
class Run(Piece):
    """A piece that lies in one block of the pool: rows `start` and following of block `slot`."""

    slot: int
    start: int


P = TypeVar("P", bound=Piece, covariant=True)


@dataclass(frozen=True, eq=False)
class Pieces(Generic[P]):
    """A partition: `part(0)` .. `part(number - 1)` in the order of the rows.

    `longest` bounds every count, `holder(position)` is the part that a row belongs to, `length` the number of rows;
    `num_blocks` and `block_size` are the pool's, and `address(position)` is where a row lies in it.
    """

    number: int
    part: Callable[[int], P]
    longest: int
    holder: Callable[[int], int]
    length: int
    num_blocks: int
    block_size: int
    address: Callable[[int], tuple[int, int]]


class Runs(Pieces[Run]):
    """A partition into runs: what a copy can move at once."""


def by_chunk(rows: PagedRows, chunk: Positive) -> Pieces[Piece]:
    """One piece for every `chunk` rows (at least 1), wherever their blocks lie; the last one is clipped."""
    length = rows.stop - rows.start

    def part(i: int) -> Piece:
        return Piece(i * chunk, min(chunk, length - i * chunk))

    number = (length + chunk - 1) // chunk
    return Pieces(number, part, chunk, lambda position: position // chunk, length, rows.num_blocks, rows.block_size, rows.address)


def by_row(rows: PagedRows) -> Runs:
    """One run a row."""

    def run(i: int) -> Run:
        slot, start = rows.address(i)
        return Run(i, 1, slot, start)

    length = rows.stop - rows.start
    return Runs(length, run, 1, lambda position: position, length, rows.num_blocks, rows.block_size, rows.address)


def by_block(rows: PagedRows) -> Runs:
    """One run a block; the first and the last are clipped to [start, stop)."""
    size, start, stop = rows.block_size, rows.start, rows.stop
    first = start // size

    def run(i: int) -> Run:
        base = (first + i) * size
        low, high = max(start, base), min(stop, base + size)
        return Run(low - start, high - low, rows.table(first + i), low - base)

    def holder(position: int) -> int:
        return (start + position) // size - first

    number = (stop - 1) // size - first + 1 if start < stop else 0
    return Runs(number, run, size, holder, stop - start, rows.num_blocks, size, rows.address)
