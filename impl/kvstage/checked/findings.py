"""What was found in a run, as errors that name both accesses, their lines, and the waits that would help."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from kvstage_model.language.buffers import Rows, overlap, parts
from kvstage_model.language.operations import (
    Operation,
    Post,
    QueryEvent,
    RecordEvent,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    reads,
    stream_of,
    writes,
)
from kvstage_model.ordering.missing_waits import advice, too_late
from kvstage_model.ordering.races import Race, races
from kvstage_model.schedules.replay_strings import to_string
from kvstage_model.schedules.schedule import Hold, Schedule
from kvstage_model.simulation.machine import DeadlockError

from ..errors import KVStageError
from .accesses import CheckedOperation, Program
from .memory import MemoryRegion, MemoryRegions
from .source_lines import Line

KEPT = 64
"""Programs whose races are remembered: a test under many schedules issues few different ones."""


class StagingError(KVStageError, AssertionError):
    """Code does what some schedule of a driver turns into wrong bytes. `schedule` is the string of one that does.

    `accesses` are the names of the two that overlap under it, as they are in the device's log; empty where there is one only.
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
    """A stream may still use memory that nobody holds any more."""


class SpinningError(StagingError, DeadlockError):
    """The host looks at the same bytes, or asks the same event, again and again, and under this schedule nothing changes them."""


class NonBlockingError(StagingError):
    """A function of torch's is asked to be asynchronous: on the simulated device it would have ended at once."""


class HostThreadError(StagingError):
    """A second host thread uses the device, or one of its tensors."""


def finding(program: Program, regions: MemoryRegions, ran: Schedule, *, replayed: bool = False) -> StagingError | None:
    """The first race of a program, if it has one.

    It names a schedule in which the two overlap; the one that `ran`, where it is `replayed`, and where the host has asked
    events: under another it may issue something else.
    """
    noted = program.noted
    found = [race for race in _races(program) if noted[race.first].number not in noted[race.second].spared]
    if not found:
        return None
    race, others = found[0], len(found) - 1
    first, second = program.noted[race.first], program.noted[race.second]
    assert first.number is not None, "the host has ended what it does before it goes on"
    kind, title = _title(first, second)
    lines = [title, *_accesses(first, second, regions), *_help(program, race)]
    asked = any(isinstance(each.operation, QueryEvent) for each in noted)
    overlapping = Hold(first.number, 1)
    schedule = ran if replayed or asked else overlapping
    shows = "they overlap" if schedule == overlapping else "found"
    lines.append(f"  {shows} under schedule {replay_of(schedule)} ({schedule})")
    if others:
        lines.append(f"  ({others} more pair{'s' if others > 1 else ''} of accesses in this run may overlap)")
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
    """The string of a schedule, or its name where it has none."""
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


def _accesses(first: CheckedOperation, second: CheckedOperation, regions: MemoryRegions) -> Iterator[str]:
    (_, mine), (_, other) = _meeting(first, second)
    start, stop = max(mine.start, other.start), min(mine.start + mine.count, other.start + other.count)
    region = regions.find(start, stop - start)
    yield f"  first:   {_said(first.line)}"
    yield f"  {'freed' if second.frees else 'second'}:{' ' * (3 if second.frees else 2)}{_said(second.line)}"
    if region is not None:
        yield f"  common:  {_bytes(region, start, stop)} {_said(region.line)}"


def _bytes(region: MemoryRegion, start: int, stop: int) -> str:
    first, last, size = start - region.start, stop - 1 - region.start, len(region.bytes)
    span = f"byte {first}" if first == last else f"bytes {first} to {last}"
    return f"{span} of {size} ({region.memory.value}), from"


def _said(line: Line | None) -> str:
    return f"{line.place}: {line.text}" if line else "a line outside of the test"


def _help(program: Program, race: Race) -> Iterator[str]:
    issued = program.issued()
    late = too_late(issued, race)
    if late is not None:
        yield f"  the wait comes too late: {_said(program.noted[late].line)}"
    proposed = advice(issued, race)
    if proposed:
        where = "before the memory is released" if program.noted[race.second].frees else "right before the second"
        yield f"  any of these, {where}, keeps them apart:"
    for each in proposed:
        yield f"    {' right behind the first, then '.join(_call(operation, program) for _, operation in each.added)}"


def _call(operation: Operation, program: Program) -> str:
    """An operation as a call of the device."""
    match operation:
        case Take():
            return "device.take(...) of what the first returned"
        case SyncStream(stream):
            return f'device.synchronize("{stream}")'
        case RecordEvent(_, stream):
            return f'device.record(event, "{stream}")'
        case SyncEvent():
            return f"device.wait(event){_recorded(operation, program)}"
        case WaitEvent(stream):
            return f'device.wait_event("{stream}", event){_recorded(operation, program)}'
        case _:
            raise AssertionError(f"no wait: {operation}")


def _recorded(wait: SyncEvent | WaitEvent, program: Program) -> str:
    """Which event, where it is one that the code has."""
    for noted in reversed(program.noted):
        if isinstance(noted.operation, RecordEvent) and noted.operation.event is wait.event:
            return f"  (of {_said(noted.line)})"
    return ""
