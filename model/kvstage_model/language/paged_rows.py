"""Where the rows of a sequence lie in a paged pool, by its block table; and in two pools whose blocks differ by a whole factor."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .buffers import Memory


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
