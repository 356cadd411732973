"""What was found in a run, as errors that name both accesses, their lines, and the waits that would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Protocol

from kvstage_model.language.buffers import Memory, Rows, overlap, parts
from kvstage_model.language.operations import (
    OnStream,
    Operation,
    Post,
    QueryEvent,
    RecordEvent,
    SyncEvent,
    WaitEvent,
    reads,
    stream_of,
    writes,
)
from kvstage_model.ordering.missing_waits import advice, too_late
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import Race, races
from kvstage_model.schedules.replay_strings import to_string
from kvstage_model.schedules.schedule import Hold, Schedule
from kvstage_model.simulation.machine import DeadlockError

from ..errors import KVStageError
from .accesses import CheckedOperation, Program
from .source_lines import Line

KEPT = 64
"""Programs whose races are remembered: a test under many schedules issues few different ones."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where bytes lie: from byte `start` on in a piece of memory of `size` bytes, which was made on a line."""

    memory: Memory
    size: int
    start: int
    line: Line | None


class Words(Protocol):
    """How a device speaks of its memory and of its calls. `freed` is what is said of the line where memory was let go."""

    freed: str

    def place(self, rows: Rows) -> Place | None:
        """Where bytes lie."""
        ...  # pragma: no cover

    def call(self, operation: Operation) -> str:
        """A wait or a record, as a user writes it."""
        ...  # pragma: no cover

    def kept(self, stream: str) -> str | None:
        """What else keeps memory from being handed out while a stream may use it, as a user writes it."""
        ...  # pragma: no cover


LOOKS_AHEAD = 200
"""How many operations after the second access of a race are looked at, for a wait that comes too late."""


class StagingError(KVStageError, AssertionError):
    """Code does what some schedule of a driver turns into wrong bytes. `schedule` is the string of one that does.

    `accesses` are the names of the two that overlap under it, as they are in the device's log; empty if there is one only.
    """

    def __init__(self, message: str, schedule: str, accesses: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.schedule = schedule
        self.accesses = accesses


class RaceError(StagingError):
    """Two pieces of work of streams touch the same bytes, one of them writes, and nothing orders them."""


class HostAccessError(StagingError):
    """The host touches bytes that a stream may still read or write: a wait is missing."""


class ReleasedMemoryError(StagingError):
    """A stream may still use memory that is not held any more."""


class SpinningError(StagingError, DeadlockError):
    """The host looks at the same bytes, or asks the same event, again and again, and under this schedule nothing changes them."""


class NonBlockingError(StagingError):
    """A function of torch's is asked to be asynchronous: on the simulated device it would have ended at once."""


class HostThreadError(StagingError):
    """A second host thread uses the device, or one of its tensors."""


def finding(program: Program, words: Words, ran: Schedule, *, replayed: bool = False) -> StagingError | None:
    """The first race of a program, if it has one.

    It names a schedule in which the two overlap; the one that `ran`, if it is `replayed`, and if the host has asked
    events: under another it may issue something else.
    """
    noted = program.noted
    found = [race for race in _races(program) if noted[race.first].number not in noted[race.second].spared]
    if not found:
        return None
    race, others = found[0], len(found) - 1
    asked = any(isinstance(each.operation, QueryEvent) for each in noted)
    number = noted[race.first].number
    assert number is not None, "the host has ended what it does before it goes on"
    more = f"({others} more pair{'s' if others > 1 else ''} of accesses in this run may overlap)" if others else None
    overlapping = Hold(number, 1)
    schedule, shows = (ran, "found") if replayed or asked else (overlapping, "they overlap")
    return error_of(program, race, words, schedule, "they overlap" if schedule == overlapping else shows, more)


def error_of(program: Program, race: Race, words: Words, schedule: Schedule, shows: str, more: str | None = None) -> StagingError:
    """A race in words: both accesses, their lines, the bytes, the waits that would help, and a schedule that shows it."""
    first, second = program.noted[race.first], program.noted[race.second]
    kind, title = _title(first, second)
    lines = [title, *_accesses(first, second, words), *_help(program, race, words)]
    lines.append(f"  {shows} under schedule {replay_of(schedule)} ({schedule})")
    if more:
        lines.append(f"  {more}")
    return kind("\n".join(lines), replay_of(schedule), (first.what, second.what))


def spinning(does: str, line: Line | None, under_way: list[CheckedOperation], schedule: str) -> SpinningError:
    """The host looks and looks at what only others could change."""
    lines = [f"the host {does} over and over, and nothing changes: under this schedule that never ends"]
    lines.append(f"  the host:   {_said(line)}")
    lines += [f"  under way:  {_said(each.line)}  ({_name(each)}; only a wait or a query makes it go on)" for each in under_way]
    return SpinningError("\n".join([*lines, f"  under schedule {schedule}"]), schedule)


def non_blocking(what: str, line: Line | None, schedule: str) -> NonBlockingError:
    """A copy that was left to torch."""
    lines = [f"{what} with non_blocking=True is asynchronous on an accelerator, and here it would have ended at once"]
    lines.append(f"  the host:   {_said(line)}")
    lines.append("  issue it on a stream: device.copy(stream, source, target)")
    return NonBlockingError("\n".join([*lines, f"  under schedule {schedule}"]), schedule)


def other_thread(line: Line | None, schedule: str) -> HostThreadError:
    """A thread that the schedule knows nothing of."""
    lines = ["a second host thread uses the device or its tensors: a schedule orders one host thread and the streams"]
    lines.append(f"  the second: {_said(line)}")
    lines.append("  let the thread that makes the device run all of the code under test")
    return HostThreadError("\n".join([*lines, f"  under schedule {schedule}"]), schedule)


def replay_of(schedule: Schedule) -> str:
    """The string of a schedule, or its name if it has none."""
    try:
        return to_string(schedule)
    except TypeError:
        return str(schedule)


@lru_cache(maxsize=KEPT)
def _races(program: Program) -> tuple[Race, ...]:
    """Depends on the program alone, and takes time that grows with its square."""
    return tuple(races(program.issued()))


def _title(first: CheckedOperation, second: CheckedOperation) -> tuple[type[StagingError], str]:
    (does, _), (did, _) = _meeting(second, first)
    if second.frees:
        return ReleasedMemoryError, f"{_name(first)} may still {did} memory that has been released"
    if stream_of(second.operation) is None and not isinstance(second.operation, Post):
        return HostAccessError, f"the host {does}s what {_name(first)} may still {did}: a wait is missing"
    return RaceError, f"{_name(second)} may {does} what {_name(first)} may still {did}: nothing orders them"


def _name(noted: CheckedOperation) -> str:
    if isinstance(noted.operation, Post):
        return noted.what
    return f"{noted.what} on stream {stream_of(noted.operation)}"


def _meeting(first: CheckedOperation, second: CheckedOperation) -> tuple[tuple[str, Rows], tuple[str, Rows]]:
    """The first two accesses that have bytes in common, at least one of them a write."""
    for (verb, mine), (other_verb, other) in product(_verbs(first.operation), _verbs(second.operation)):
        if (verb, other_verb) != ("read", "read") and overlap(mine, other):
            return (verb, mine), (other_verb, other)
    raise AssertionError("a race has bytes in common")


def _verbs(operation: Operation) -> Iterator[tuple[str, Rows]]:
    for verb, accesses in (("write", writes(operation)), ("read", reads(operation))):
        yield from ((verb, rows) for access in accesses for rows in parts(access))


def _accesses(first: CheckedOperation, second: CheckedOperation, words: Words) -> Iterator[str]:
    (_, mine), (_, other) = _meeting(first, second)
    start, stop = max(mine.start, other.start), min(mine.start + mine.count, other.start + other.count)
    place = words.place(mine.buffer.at(mine.slot, start, stop - start))
    yield f"  first:   {_said(first.line)}"
    label = f"{words.freed if second.frees else 'second'}:"
    yield f"  {label:<8} {_said(second.line)}"
    if place is not None:
        yield f"  common:  {_bytes(place, stop - start)} {_said(place.line)}"


def _bytes(place: Place, count: int) -> str:
    first, last = place.start, place.start + count - 1
    span = f"byte {first}" if first == last else f"bytes {first} to {last}"
    return f"{span} of {place.size} ({place.memory.value}), from"


def _said(line: Line | None) -> str:
    return f"{line.place}: {line.text}" if line else "a line outside of the test"


def _help(program: Program, race: Race, words: Words) -> Iterator[str]:
    """What would keep the two apart. What was issued before the first can't: no order leads there and back."""
    noted = program.noted[race.first : race.second + LOOKS_AHEAD]
    issued = tuple(Issued(0, "loop", step, each.operation) for step, each in enumerate(noted))
    race = Race(0, race.second - race.first)
    late = too_late(issued, race)
    if late is not None:
        yield f"  the wait comes too late: {_said(noted[late].line)}"
    proposed = advice(issued, race)
    if proposed:
        where = "before the memory is released" if noted[race.second].frees else "right before the second"
        yield f"  any of these, {where}, keeps them apart:"
    for each in proposed:
        calls = (f"{words.call(operation)}{_recorded(operation, noted)}" for _, operation in each.added)
        yield f"    {' right behind the first, then '.join(calls)}"
    first = noted[0].operation
    if noted[race.second].frees and isinstance(first, OnStream) and (kept := words.kept(first.stream)):
        yield f"    {kept}"


def _recorded(wait: Operation, noted: Sequence[CheckedOperation]) -> str:
    """Which event, if it is one that the code has."""
    if isinstance(wait, SyncEvent | WaitEvent):
        for each in reversed(noted):
            if isinstance(each.operation, RecordEvent) and each.operation.event is wait.event:
                return f"  (of {_said(each.line)})"
    return ""
