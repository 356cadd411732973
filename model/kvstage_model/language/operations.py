"""What a staging loop does: buffers, runs of rows, and the operations that the host issues.

Every number here is an `int`, or a symbolic index while a scheme is being proved; both read the same.
Nothing compares by value: `==` between symbolic fields would fork the proof silently, so records are compared
by name, with the functions at the end of this file.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeAlias

from .buffers import Access, Paged, Rows
from .fast_dataclass import fast_dataclass


@fast_dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One event of an indexed family: `Event("filled", slot)`. `call` tells events apart that don't outlive a call."""

    name: str
    index: int = 0
    call: int = 0


@fast_dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """The step that a wait is meant for: `step` of the loop named `phase`, or of any that does what the wait waits for."""

    step: int
    phase: str | None = None


@fast_dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """Asynchronous: moves rows at some time after its issue, after all earlier work of its stream."""

    stream: str
    source: Rows
    target: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """A kernel that packs rows of the pool: row r of `target` is row r of `source`. It may write pinned memory."""

    stream: str
    source: Paged
    target: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """A kernel that unpacks rows into the pool: row r of `source` goes to row r of `target`. It may read pinned memory."""

    stream: str
    source: Rows
    target: Paged


@fast_dataclass(frozen=True, slots=True, eq=False)
class CopyBatch:
    """Several copies in one call of the driver, (source, target) each, with no order among them."""

    stream: str
    copies: tuple[tuple[Rows, Rows], ...]


@fast_dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """Any other kernel, such as the caller's: it reads and writes what it is given.

    Nothing orders its threads: what it reads and what it writes are the very same rows, or have none in common. `in_place` says
    that the kernel itself orders its reads and writes of common rows, as one does that first reads all and then writes.
    """

    stream: str
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    in_place: bool = False


@fast_dataclass(frozen=True, slots=True, eq=False)
class RecordEvent:
    """Marks what was issued on a stream so far. The last record of an event is the one that counts."""

    event: Event
    stream: str


@fast_dataclass(frozen=True, slots=True, eq=False)
class SyncEvent:
    """The host waits for what the event's last record marks; an event that was never recorded does not block.

    `aim` is the step whose record it is meant for, or an `Aim`, which names its loop too: a hint for the proof, never trusted.
    """

    event: Event
    aim: int | Aim | None = None


@fast_dataclass(frozen=True, slots=True, eq=False)
class WaitEvent:
    """A stream waits, before its later work, for what the event's last record marks when this is issued.

    `aim` is the step whose record it is meant for, or an `Aim`, which names its loop too: a hint for the proof, never trusted.
    """

    stream: str
    event: Event
    aim: int | Aim | None = None


@fast_dataclass(frozen=True, slots=True, eq=False)
class HostCopy:
    """The host moves rows itself, before it goes on."""

    source: Rows
    target: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class HostRead:
    """The host, or the party that it hands the rows to, reads them."""

    source: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class HostWrite:
    """The host, or the party that it hands the rows to, overwrites them."""

    target: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class SyncStream:
    """The host waits for all that was issued on a stream before.

    `aim` is the step whose work it is meant for, or an `Aim`: a hint for the proof, never trusted. Without one the proof looks at
    the step before.
    """

    stream: str
    aim: int | Aim | None = None


@fast_dataclass(frozen=True, slots=True, eq=False)
class QueryEvent:
    """The host asks whether what the event's last record marks has ended, and goes on. `answer` is 1 for yes, 0 for not yet.

    A scheme takes its answers from a parameter of type `Flags`, and guards with them what follows.
    """

    event: Event
    answer: int


@fast_dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The host hands rows to another party, such as a network card, which may write them from now on."""

    target: Rows


@fast_dataclass(frozen=True, slots=True, eq=False)
class Acquire:
    """The host takes rows back: it waits until the party that they were released to has written them.

    `aim` is the step whose release it is meant for, or an `Aim`: a hint for the proof, never trusted.
    """

    target: Rows
    aim: int | Aim | None = None


@fast_dataclass(frozen=True, slots=True, eq=False)
class Post:
    """The host hands a transfer to an agent outside all streams, such as a network card or a disk: from now on, at any time, it
    reads and writes these rows.

    No stream orders it, and no event of a stream holds it back: only the host can, by what it waits for before.
    """

    event: Event
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()


@fast_dataclass(frozen=True, slots=True, eq=False)
class Take:
    """The host waits until all transfers that were posted under this event before have ended."""

    event: Event


OnStream = Copy | Gather | Scatter | CopyBatch | Launch | RecordEvent | WaitEvent
"""Work that a stream does later."""

Later = OnStream | Release | Post
"""What happens later, on a stream or elsewhere; everything else is done when the host goes on."""

Operation: TypeAlias = Later | HostCopy | HostRead | HostWrite | SyncStream | SyncEvent | QueryEvent | Acquire | Take


def reads(operation: Operation) -> tuple[Access, ...]:
    """What an operation reads."""
    if isinstance(operation, Launch | Post):
        return operation.reads
    if isinstance(operation, HostRead):
        return (operation.source,)
    return tuple(source for source, _ in moves(operation))


def writes(operation: Operation) -> tuple[Access, ...]:
    """What an operation writes."""
    if isinstance(operation, Launch | Post):
        return operation.writes
    if isinstance(operation, HostWrite | Release):
        return (operation.target,)
    return tuple(target for _, target in moves(operation))


def moves(operation: Operation) -> tuple[tuple[Access, Access], ...]:
    """The (source, target) pairs of what moves rows: row r of each source becomes row r of its target."""
    if isinstance(operation, CopyBatch):
        return operation.copies
    return ((operation.source, operation.target),) if isinstance(operation, Copy | Gather | Scatter | HostCopy) else ()


def placed(operation: Operation, place: Callable[[Access], Access]) -> Operation:
    """The operation with each of its accesses where `place` puts it."""
    return replace(operation, **{field.name: _placed(getattr(operation, field.name), place) for field in fields(operation)})


def _placed(value: Any, place: Callable[[Access], Access]) -> Any:
    if isinstance(value, tuple):
        return tuple(_placed(each, place) for each in value)
    return place(value) if isinstance(value, Rows | Paged) else value


def stream_of(operation: Operation) -> str | None:
    """The stream that an operation is issued on or waits for, if any."""
    return operation.stream if isinstance(operation, OnStream | SyncStream) else None


def event_of(operation: Operation) -> Event | None:
    """The event that an operation records or waits for, or that a transfer is posted under, if any."""
    named = RecordEvent | SyncEvent | WaitEvent | QueryEvent | Post | Take
    return operation.event if isinstance(operation, named) else None


def covers(first: Rows, second: Rows) -> bool:
    """Whether the first run has all rows of the second one."""
    return (
        (first.buffer.name == second.buffer.name)
        & (first.slot == second.slot)
        & (first.start <= second.start)
        & (second.start + second.count <= first.start + first.count)
    )
