"""What a staging loop does: buffers, runs of rows, and the operations that the host issues.

Every number here is an `int`, or a symbolic index while a scheme is being proved; both read the same.
Nothing compares by value: `==` between symbolic fields would fork the proof silently, so records are compared
by name, with the functions at the end of this file.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Memory(Enum):
    """Where a buffer lies."""

    DEVICE = "device"
    """The device's own memory: the host can't address it."""
    PINNED = "pinned"
    """Page-locked host memory: an asynchronous copy reads and writes it while it runs."""
    PAGEABLE = "pageable"
    """Ordinary host memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """`slots` slots of `rows` rows each. Buffers of different names never share a byte."""

    name: str
    memory: Memory
    slots: int
    rows: int

    def at(self, slot: int, start: int, count: int) -> "Rows":
        """The `count` rows from `start` on, inside one slot."""
        return Rows(self, slot, start, count)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """`count` neighbouring rows inside one slot of a buffer."""

    buffer: Buffer
    slot: int
    start: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One event of an indexed family: `Event("filled", slot)`."""

    name: str
    index: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """Asynchronous: moves rows at some time after its issue, after all earlier work of its stream."""

    stream: str
    source: Rows
    target: Rows


@dataclass(frozen=True, slots=True, eq=False)
class HostCopy:
    """The host moves rows itself, before it goes on."""

    source: Rows
    target: Rows


@dataclass(frozen=True, slots=True, eq=False)
class HostRead:
    """The host, or whoever it hands the rows to, reads them."""

    source: Rows


@dataclass(frozen=True, slots=True, eq=False)
class HostWrite:
    """The host, or whoever it hands the rows to, overwrites them."""

    target: Rows


@dataclass(frozen=True, slots=True, eq=False)
class SyncStream:
    """The host waits for all that was issued on a stream before."""

    stream: str


Operation: TypeAlias = Copy | HostCopy | HostRead | HostWrite | SyncStream

OnStream = Copy
"""Work that a stream does later; everything else is done when the host goes on."""


def reads(operation: Operation) -> tuple[Rows, ...]:
    """The rows that an operation reads."""
    return (operation.source,) if isinstance(operation, Copy | HostCopy | HostRead) else ()


def writes(operation: Operation) -> tuple[Rows, ...]:
    """The rows that an operation writes."""
    return (operation.target,) if isinstance(operation, Copy | HostCopy | HostWrite) else ()


def stream_of(operation: Operation) -> str | None:
    """The stream that an operation is issued on or waits for, if any."""
    return operation.stream if isinstance(operation, Copy | SyncStream) else None


def overlap(first: Rows, second: Rows) -> bool:
    """Whether two runs have a row in common. Runs of different buffers never have."""
    return (
        (first.buffer.name == second.buffer.name)
        & (first.slot == second.slot)
        & (first.start < second.start + second.count)
        & (second.start < first.start + first.count)
    )


def disjoint(first: Rows, second: Rows) -> bool:
    """Whether two runs have no row in common: `not overlap`, written so that it needs no truth of its parts."""
    return (
        (first.buffer.name != second.buffer.name)
        | (first.slot != second.slot)
        | (first.start >= second.start + second.count)
        | (second.start >= first.start + first.count)
    )
