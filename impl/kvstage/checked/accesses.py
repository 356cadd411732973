"""What code has issued on a checked device: a program of the model, over bytes, and the user's line of each operation."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import (
    Event,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    QueryEvent,
    RecordEvent,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    event_of,
    reads,
    stream_of,
    writes,
)
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.touched_rows import TouchedRows

from .source_lines import Line

LOOKS_BACK = 16
"""How many accesses of the host a new one is compared with, to be one with that of the same line: loops have few lines."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedOperation:
    """One operation, what it is called in messages, and where the user issued it.

    `number` counts what streams do with bytes, as schedules do; it is None for all else.
    `spared`, of memory that is handed out again: the numbers of the work that its allocator has waited for.
    """

    operation: Operation
    what: str
    line: Line | None
    number: int | None = None
    frees: bool = False
    spared: frozenset[int] = frozenset()


class Accesses:
    """The operations of one run, in the order in which the host issued them."""

    def __init__(self) -> None:
        self.noted: list[CheckedOperation] = []
        self.asynchronous = 0
        self._events: dict[Hashable, int] = {}

    def later(self, operation: Operation, what: str, line: Line | None) -> int:
        """Work that moves bytes on a stream, or elsewhere: its place among what is noted."""
        self.noted.append(CheckedOperation(operation, what, line, self.asynchronous))
        self.asynchronous += 1
        return len(self.noted) - 1

    def touched(self, place: int, operation: Operation) -> None:
        """Work turns out to touch other bytes than was noted when it was issued: an index was not known by then."""
        self.noted[place] = replace(self.noted[place], operation=operation)

    def handed_out(self, stream: str, rows: Rows, what: str, line: Line | None) -> None:
        """An allocator may give bytes to later work of a stream: no work of its own, so that schedules don't count it."""
        self.noted.append(CheckedOperation(Launch(stream, (), (rows,)), what, line, frees=True))

    def host(self, read: tuple[Rows, ...], written: tuple[Rows, ...], what: str, line: Line | None) -> None:
        """The host reads and writes bytes itself. What a line does side by side is one access, named as the last."""
        for rows in read:
            self._access(CheckedOperation(HostRead(rows), what, line))
        for rows in written:
            self._access(CheckedOperation(HostWrite(rows), what, line))

    def host_copy(self, source: Rows, target: Rows, line: Line | None) -> None:
        """The host moves bytes."""
        self.noted.append(CheckedOperation(HostCopy(source, target), "the host", line))

    def freed(self, rows: Rows, line: Line | None, spared: frozenset[int] = frozenset()) -> None:
        """The bytes are not held any more: what gets them next may write there."""
        self.noted.append(CheckedOperation(HostWrite(rows), "the host", line, frees=True, spared=spared))

    def freed_on(self, stream: str, rows: Rows, what: str, line: Line | None, spared: frozenset[int]) -> None:
        """Who gets the bytes next may write there by work of a stream."""
        self.noted.append(CheckedOperation(Launch(stream, writes=(rows,)), what, line, self.asynchronous, True, spared))
        self.asynchronous += 1

    def take(self, posted: Event, line: Line | None) -> None:
        """The host waits for a transfer that it has posted."""
        self.noted.append(CheckedOperation(Take(posted), "the host", line))

    def synchronize(self, stream: str, line: Line | None) -> None:
        """The host waits for a stream."""
        self.noted.append(CheckedOperation(SyncStream(stream), "the host", line))

    def record(self, event: Hashable, stream: str, line: Line | None) -> None:
        """An event is recorded on a stream."""
        self.noted.append(CheckedOperation(RecordEvent(self._event(event), stream), "a record", line))

    def wait_event(self, stream: str, event: Hashable, line: Line | None) -> None:
        """A stream waits for an event."""
        self.noted.append(CheckedOperation(WaitEvent(stream, self._event(event)), "a wait", line))

    def wait(self, event: Hashable, line: Line | None) -> None:
        """The host waits for an event."""
        self.noted.append(CheckedOperation(SyncEvent(self._event(event)), "the host", line))

    def query(self, event: Hashable, answer: bool, line: Line | None) -> bool:
        """The host has asked: whether that is noted as one with the query before.

        Of a run of refusals the last says all: what has not ended then, had not before.
        """
        operation = QueryEvent(self._event(event), int(answer))
        last = self.noted[-1].operation if self.noted else None
        again = not answer and isinstance(last, QueryEvent) and not last.answer and last.event.index == operation.event.index
        if again:
            self.noted.pop()
        self.noted.append(CheckedOperation(operation, "the host", line))
        return again

    def program(self, place: Callable[[Rows], Hashable]) -> "Program":
        """What was issued, but for what the host alone ever touched: that can't be in the way.

        `place` says where bytes lie in words that are the same in every run.
        """
        shared = TouchedRows()
        for number, each in enumerate(self.noted):
            if each.number is not None:
                for rows in _rows(each.operation):
                    shared.add(rows, True, 0, number)
        kept = tuple(each for each in self.noted if each.number is not None or _matters(each.operation, shared))
        return Program(tuple(_signature(each.operation, place) for each in kept), kept)

    def _access(self, noted: CheckedOperation) -> None:
        (rows,) = _rows(noted.operation)
        for at in reversed(range(max(0, len(self.noted) - LOOKS_BACK), len(self.noted))):
            before = self.noted[at]
            if not isinstance(before.operation, HostRead | HostWrite) or before.frees:
                break
            (other,) = _rows(before.operation)
            alike = type(before.operation) is type(noted.operation) and before.line == noted.line
            if alike and (union := _union(rows, other)):
                self.noted[at] = CheckedOperation(type(before.operation)(union), noted.what, noted.line)
                return
        self.noted.append(noted)

    def _event(self, event: Hashable) -> Event:
        return Event("event", self._events.setdefault(event, len(self._events)))


@dataclass(frozen=True)
class Program:
    """The operations of a run that matter for races. Runs that issued the same have equal ones, wherever their memory lies."""

    signature: tuple[Hashable, ...]
    noted: tuple[CheckedOperation, ...] = field(compare=False)

    def issued(self) -> tuple[Issued, ...]:
        """For the race finder: each operation is a step."""
        return tuple(Issued(0, "loop", step, each.operation) for step, each in enumerate(self.noted))


def _union(first: Rows, second: Rows) -> Rows | None:
    """Both runs as one, if they touch."""
    start, stop = min(first.start, second.start), max(first.start + first.count, second.start + second.count)
    return first.buffer.at(0, start, stop - start) if stop - start <= first.count + second.count else None


def _matters(operation: Operation, shared: TouchedRows) -> bool:
    mine = list(_rows(operation))
    return not mine or any(any(shared.of(rows, True)) for rows in mine)


def _rows(operation: Operation) -> Iterator[Rows]:
    for access in (*reads(operation), *writes(operation)):
        assert isinstance(access, Rows), "bytes are noted as runs"
        yield access


def _signature(operation: Operation, place: Callable[[Rows], Hashable]) -> Hashable:
    event = event_of(operation)
    answer = operation.answer if isinstance(operation, QueryEvent) else None
    places = tuple((len(reads(operation)), place(rows), rows.count) for rows in _rows(operation))
    return type(operation).__name__, stream_of(operation), event and event.index, answer, places
