"""Rows of one sequence that lie in two pools, whose blocks differ by a whole factor: what is copied from pool to pool."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from .buffers import Memory
from .runs import PagedRows


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows of a sequence in two pools: `small` in the one, and in the other the same rows in blocks `factor` times as large.

    Block `table(k)` of the larger pool holds what blocks k * factor .. (k + 1) * factor - 1 of the sequence hold in the
    smaller one, side by side. `num_blocks` is the number of the larger pool's blocks, `factor` at least 1. Requires
    0 <= table(k) < num_blocks for every block that the rows touch. The proofs hold wherever the pools lie.
    """

    small: PagedRows
    table: Callable[[int], int]
    num_blocks: int
    factor: int
    small_memory: Memory = Memory.DEVICE
    memory: Memory = Memory.PINNED

    @property
    def block_size(self) -> int:
        """Rows of a block of the larger pool."""
        return self.factor * self.small.block_size

    def address(self, position: int) -> tuple[int, int]:
        """Block and row of the `position`-th row in the larger pool. The one home of this formula."""
        row = self.small.start + position
        block = row // self.small.block_size
        return self.table(block // self.factor), (block % self.factor) * self.small.block_size + row % self.small.block_size

    def touches(self, block: int) -> bool:
        """Whether the rows reach into a block of the larger pool's table."""
        first, last = (row // self.small.block_size for row in (self.small.start, self.small.stop - 1))
        base = block * self.factor
        return (self.small.start < self.small.stop) & (first < base + self.factor) & (base <= last)


class IntoLarger(PairedRows):
    """To be moved into the pool with the larger blocks: `Distinct` speaks of its table."""


class IntoSmaller(PairedRows):
    """To be moved into the pool with the smaller blocks: `Distinct` speaks of its table."""


AnyPair = TypeVar("AnyPair", bound=PairedRows)


def small_pairs(kind: type[AnyPair], rows: PagedRows, distinct: bool) -> Iterator[AnyPair]:
    """The same rows in blocks as large, and twice as large: with tables in order, reversed, and with a repetition."""
    blocks = (rows.stop - 1) // rows.block_size + 1
    for factor in (1, 2):
        number = (blocks + factor - 1) // factor
        tables = [tuple(range(number)), tuple(reversed(range(number)))]
        if not (distinct and issubclass(kind, IntoLarger)):
            tables.append((0,) * number)
        for table in dict.fromkeys(tables):
            yield kind(rows, table.__getitem__, number, factor)
