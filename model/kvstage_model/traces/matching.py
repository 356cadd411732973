"""Whether a program is a scheme's: its operations, in its order, on its rows. Linear in the number of operations.

A recorder knows buffers and events by what they are, not by the scheme's names. So names need not be equal: each name of
the program must stand for one of the scheme's, and no two for the same.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeVar

from ..language.buffers import Access, Buffer, Rows
from ..language.edits import Ordering
from ..language.operations import (
    Copy,
    CopyBatch,
    Event,
    Operation,
    QueryEvent,
    RecordEvent,
    SyncEvent,
    SyncStream,
    event_of,
    reads,
    stream_of,
    writes,
)
from ..language.scheme import Result
from ..ordering.program import Issued, describe

Name = TypeVar("Name")
EventKey = tuple[str, int, int]


@dataclass
class Names:
    """Which buffers and events of a program stand for which of a scheme, one for one. Grows as operations are compared.

    `buffers` begins with what is known, such as which memory is the pool. Kept from call to call, `events` tells that a
    scheme's events outlive its calls.
    """

    buffers: dict[str, str] = field(default_factory=dict)
    events: dict[EventKey, EventKey] = field(default_factory=dict)

    def buffer(self, found: Buffer, wanted: Buffer) -> bool:
        """Whether a buffer may stand for the scheme's; from now on it does."""
        alike = (found.memory, found.slots, found.rows) == (wanted.memory, wanted.slots, wanted.rows)
        return alike and _paired(self.buffers, found.name, wanted.name)

    def event(self, found: Event | None, wanted: Event | None) -> bool:
        """Whether an event may stand for the scheme's; from now on it does."""
        if found is None or wanted is None:
            return found is wanted
        return _paired(self.events, key(found), key(wanted))

    def forget(self, result: Result | None) -> None:
        """Lets go of the caller's buffers: each call may have others."""
        callers = () if result is None else (result.pool.name, result.host.name)
        self.buffers = {found: wanted for found, wanted in self.buffers.items() if wanted not in callers}

    def words(self) -> str:
        """Which names stand for others, if any do."""
        others = [f"{found} is the scheme's {wanted}" for found, wanted in self.buffers.items() if found != wanted]
        return f" ({', '.join(others)})" if others else ""


def _paired(pairs: dict[Name, Name], found: Name, wanted: Name) -> bool:
    if found not in pairs and wanted not in pairs.values():
        pairs[found] = wanted
    return pairs.get(found) == wanted


def key(event: Event) -> EventKey:
    """What makes two events one."""
    return event.name, event.index, event.call


@dataclass(frozen=True, slots=True)
class Departure:
    """Operation number `index` of a program is not what the scheme issues there; its length, if the program ends early."""

    index: int
    words: str


def departure(found: Sequence[Issued], wanted: Sequence[Issued], names: Names) -> Departure | None:
    """The first operation of a program that is not the scheme's; None if it issues all of `wanted`, and nothing else.

    A wait for a stream may be made through an event that is recorded there: the same by A4 and A5. The copies of a batch
    may come one by one: more order than it promises.
    """
    at = 0
    for number, want in enumerate(wanted):
        instead = _event_instead(found, at, want.operation, names)
        if instead:
            at += instead
            continue
        for operation in _one_by_one(found[at].operation if at < len(found) else None, want.operation):
            if at == len(found):
                return Departure(at, f"the trace ends where the scheme issues [{describe(want)}]")
            if not _same(found[at].operation, operation, names):
                return Departure(at, _told(found, at, wanted, number, names))
            at += 1
    if at < len(found):
        return Departure(at, f"[{describe(found[at])}] comes where the scheme has ended{names.words()}")
    return None


def _event_instead(found: Sequence[Issued], at: int, wanted: Operation, names: Names) -> int:
    """How many operations wait for a stream through an event of its own; 0 if they don't."""
    record = found[at].operation if at < len(found) else None
    if not (isinstance(wanted, SyncStream) and isinstance(record, RecordEvent) and record.stream == wanted.stream):
        return 0
    if key(record.event) in names.events:
        return 0
    for number, issued in enumerate(found[at + 1 :], 2):
        wait = issued.operation
        if not isinstance(wait, SyncEvent | QueryEvent) or key(wait.event) != key(record.event):
            return 0
        if isinstance(wait, SyncEvent) or wait.answer:
            return number
    return 0


def _one_by_one(found: Operation | None, wanted: Operation) -> Iterator[Operation]:
    if isinstance(wanted, CopyBatch) and isinstance(found, Copy):
        yield from (Copy(wanted.stream, source, target) for source, target in wanted.copies)
    else:
        yield wanted


def _same(found: Operation, wanted: Operation, names: Names) -> bool:
    if type(found) is not type(wanted) or stream_of(found) != stream_of(wanted):
        return False
    if isinstance(found, QueryEvent) and isinstance(wanted, QueryEvent) and found.answer != wanted.answer:
        return False
    if not names.event(event_of(found), event_of(wanted)):
        return False
    for mine, other in ((reads(found), reads(wanted)), (writes(found), writes(wanted))):
        if len(mine) != len(other) or not all(_same_rows(one, two, names) for one, two in zip(mine, other, strict=True)):
            return False
    return True


def _same_rows(found: Access, wanted: Access, names: Names) -> bool:
    return _places(found) == _places(wanted) and names.buffer(found.buffer, wanted.buffer)


def _places(access: Access) -> tuple[int, int, int] | list[tuple[int, int]]:
    if isinstance(access, Rows):
        return access.slot, access.start, access.count
    return [access.rows.address(position) for position in range(access.first, access.first + access.count)]


def _told(found: Sequence[Issued], at: int, wanted: Sequence[Issued], number: int, names: Names) -> str:
    """What is wrong with an operation, and what seems to have happened."""
    mine, other = found[at], wanted[number]
    told = f"[{describe(mine)}] comes where the scheme issues [{describe(other)}]{names.words()}"
    following = next((want for want in wanted[number + 1 :] if not isinstance(want.operation, Ordering)), None)
    kind = type(other.operation).__name__
    if isinstance(other.operation, Ordering) and following and _same(mine.operation, following.operation, deepcopy(names)):
        return f"{told}: the {kind} is missing"
    if type(mine.operation) is not type(other.operation):
        return told
    if stream_of(mine.operation) != stream_of(other.operation):
        return f"{told}: the stream is another"
    if not names.event(event_of(mine.operation), event_of(other.operation)):
        return f"{told}: the event is another"
    return f"{told}: {_other_buffer(mine.operation, other.operation) or 'the rows are others'}"


def _other_buffer(found: Operation, wanted: Operation) -> str | None:
    """How a buffer differs from the scheme's, if the rows have the same places."""
    sides = ((*reads(found), *writes(found)), (*reads(wanted), *writes(wanted)))
    for mine, other in zip(*sides, strict=False):
        one, two = mine.buffer, other.buffer
        same_place = _places(mine) == _places(other)
        if same_place and one.memory is not two.memory:
            return f"{one.name} is {one.memory.value} memory, and the scheme's {two.name} is {two.memory.value}"
        if same_place and (one.slots, one.rows) != (two.slots, two.rows):
            return f"{one.name} has {one.slots} slots of {one.rows} rows, and the scheme's {two.name} has {two.slots} of {two.rows}"
    return None
