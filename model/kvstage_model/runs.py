"""Partitions: the rows [start, stop) of one sequence, cut into runs that lie side by side in a paged pool.

A scheme moves runs and does not care how they were cut. Each partition here is proved to fulfil one `contract`, and
a scheme proved over any runs that fulfil the contract holds for every partition that does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class PagedRows:
    """Rows [start, stop) of one sequence: block `table(k)` of the pool holds rows [k * block_size, (k + 1) * block_size).

    `num_blocks` is the number of blocks in the pool, `block_size` the rows of a block (at least 1). Requires
    0 <= start <= stop, and 0 <= table(k) < num_blocks for every block that the rows touch.
    """

    table: Callable[[int], int]
    num_blocks: int
    block_size: int
    start: int
    stop: int

    def address(self, position: int) -> tuple[int, int]:
        """Block and row of the `position`-th row that is moved. The one home of this formula."""
        row = self.start + position
        return self.table(row // self.block_size), row % self.block_size

    def touches(self, block: int) -> bool:
        """Whether the rows that are moved reach into a block of the table."""
        base = block * self.block_size
        return (self.start < self.stop) & (self.start < base + self.block_size) & (base < self.stop)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """`count` rows from `start` on in pool block `slot`: rows `position` and following of the transfer."""

    slot: int
    start: int
    count: int
    position: int


@dataclass(frozen=True, eq=False)
class Runs:
    """A partition: `run(0)` .. `run(number - 1)` in the order of the rows.

    `longest` bounds every count, `holder(position)` is the run that a row belongs to, `length` the number of rows;
    `num_blocks` and `block_size` are the pool's, and `address(position)` is where a row lies in it.
    """

    number: int
    run: Callable[[int], Run]
    longest: int
    holder: Callable[[int], int]
    length: int
    num_blocks: int
    block_size: int
    address: Callable[[int], tuple[int, int]]


def by_row(rows: PagedRows) -> Runs:
    """One run a row."""

    def run(i: int) -> Run:
        slot, start = rows.address(i)
        return Run(slot, start, 1, i)

    length = rows.stop - rows.start
    return Runs(length, run, 1, lambda position: position, length, rows.num_blocks, rows.block_size, rows.address)


def by_block(rows: PagedRows) -> Runs:
    """One run a block; the first and the last are clipped to [start, stop)."""
    size, start, stop = rows.block_size, rows.start, rows.stop
    first = start // size

    def run(i: int) -> Run:
        base = (first + i) * size
        low, high = max(start, base), min(stop, base + size)
        return Run(rows.table(first + i), low - base, high - low, low - start)

    def holder(position: int) -> int:
        return (start + position) // size - first

    number = (stop - 1) // size - first + 1 if start < stop else 0
    return Runs(number, run, size, holder, stop - start, rows.num_blocks, size, rows.address)


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """One sentence of the contract: where the premise holds, the conclusion holds."""

    name: str
    premise: bool
    conclusion: bool


def contract(runs: Runs, i: int, j: int, position: int) -> Iterator[Clause]:
    """What every partition promises, for any two runs i and j and any row of the transfer.

    Read with ints by the tests; read with symbols it is what partitions are proved to fulfil, and what a scheme
    over "any runs" may assume.
    """
    first, second = runs.run(i), runs.run(j)
    inside = (i >= 0) & (i < runs.number)
    both = inside & (j >= 0) & (j < runs.number)
    row = (position >= 0) & (position < runs.length)
    held = (first.position <= position) & (position < first.position + first.count)
    slot, start = runs.address(position)
    holder = runs.holder(position)
    ends = first.position + first.count
    yield Clause("the number of runs is not negative", True, runs.number >= 0)
    yield Clause("a run holds a row, and no more than the longest", inside, (first.count >= 1) & (first.count <= runs.longest))
    yield Clause("a run lies inside one block", inside, (first.start >= 0) & (first.start + first.count <= runs.block_size))
    yield Clause("a run's block lies in the pool", inside, (first.slot >= 0) & (first.slot < runs.num_blocks))
    yield Clause("a run lies inside the transfer", inside, (first.position >= 0) & (ends <= runs.length))
    yield Clause("runs are disjoint and in order", both & (i < j), ends <= second.position)
    at_address = (slot == first.slot) & (start == first.start + position - first.position)
    yield Clause("each row of a run lies at its address", inside & held, at_address)
    yield Clause("each row has a holder", row, (holder >= 0) & (holder < runs.number))
    yield Clause("the holder of a row holds it", row & (i == holder), held)
    yield Clause("no other run holds it", row & inside & held, i == holder)


def distinct_runs(runs: Runs, i: int, j: int) -> Clause:
    """What a table in which no block occurs twice adds to the contract: no two runs share a row of the pool."""
    first, second = runs.run(i), runs.run(j)
    both = (i >= 0) & (i < runs.number) & (j >= 0) & (j < runs.number)
    apart = (first.slot != second.slot) | (first.start + first.count <= second.start) | (second.start + second.count <= first.start)
    return Clause("no two runs share a row of the pool", both & (i != j), apart)
