"""Buffers and runs of rows in them. Every number here is an `int`, or a symbolic index while a scheme is being proved.

Nothing compares by value: `==` between symbolic fields would fork the proof silently. Buffers are told apart by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias, runtime_checkable

from .fast_dataclass import fast_dataclass


@runtime_checkable
class Addressed(Protocol):
    """What knows where the rows of a transfer lie."""

    @property
    def address(self) -> Callable[[int], tuple[int, int]]:
        """Block and row of the `position`-th row of the transfer."""
        ...  # pragma: no cover


class Memory(Enum):
    """Where a buffer lies."""

    DEVICE = "device"
    """The device's own memory: the host can't address it."""
    PINNED = "pinned"
    """Page-locked host memory: an asynchronous copy reads and writes it while it runs."""
    PAGEABLE = "pageable"
    """Ordinary host memory."""


@fast_dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """`slots` slots of `rows` rows each. Buffers of different names never share a byte."""

    name: str
    memory: Memory
    slots: int
    rows: int

    def at(self, slot: int, start: int, count: int) -> "Rows":
        """The `count` rows from `start` on, inside one slot."""
        return Rows(self, slot, start, count)


@fast_dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """`count` neighbouring rows inside one slot of a buffer."""

    buffer: Buffer
    slot: int
    start: int
    count: int


@fast_dataclass(frozen=True, slots=True, eq=False)
class Paged:
    """Rows `first` .. `first + count - 1` of a transfer, each at its own address in the pool: what a kernel reaches."""

    buffer: Buffer
    rows: Addressed
    first: int
    count: int

    def at(self, row: int) -> Rows:
        """The one row of the pool that is row `row` of these."""
        slot, start = self.rows.address(self.first + row)
        return Rows(self.buffer, slot, start, 1)


Access: TypeAlias = Rows | Paged
"""What an operation reads or writes."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Where the first rows of a concrete transfer lie, as a list: plain data, unlike a partition's functions."""

    places: tuple[tuple[int, int], ...]

    def address(self, position: int) -> tuple[int, int]:
        """Block and row of the `position`-th row."""
        return self.places[position]


def parts(access: Access) -> tuple[Rows, ...]:
    """The runs of rows that an access consists of. Needs a concrete count."""
    return (access,) if isinstance(access, Rows) else tuple(access.at(row) for row in range(access.count))


def overlap(first: Rows, second: Rows) -> bool:
    """Whether two runs have a row in common. Runs of different buffers never have, nor has a run of no rows."""
    return (
        (first.buffer.name == second.buffer.name)
        & (first.slot == second.slot)
        & (first.start < second.start + second.count)
        & (second.start < first.start + first.count)
        & (first.count > 0)
        & (second.count > 0)
    )


def disjoint(first: Rows, second: Rows) -> bool:
    """Whether two runs have no row in common: `not overlap`, written so that it needs no truth of its parts."""
    return (
        (first.buffer.name != second.buffer.name)
        | (first.slot != second.slot)
        | (first.start >= second.start + second.count)
        | (second.start >= first.start + first.count)
        | (first.count <= 0)
        | (second.count <= 0)
    )
