"""A checked device's run as a trace of the model: each piece of memory that it met is a buffer, and a row is a byte."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kvstage_model.language.buffers import Access, Buffer, Memory, Rows
from kvstage_model.language.operations import (
    HostCopy,
    Operation,
    QueryEvent,
    RecordEvent,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    placed,
)
from kvstage_model.language.scheme import LOOP
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import Trace, TraceEvent

from .accesses import CheckedOperation
from .memory import MemoryRegions

SYNCHRONIZE, WAIT, QUERY, RECORD, STREAM_WAIT = "synchronize", "wait", "query", "record", "stream wait"
HOST_COPY, FREE, TAKE = "host copy", "free", "take"

KINDS: dict[type, str] = {
    SyncStream: SYNCHRONIZE,
    SyncEvent: WAIT,
    QueryEvent: QUERY,
    RecordEvent: RECORD,
    WaitEvent: STREAM_WAIT,
    HostCopy: HOST_COPY,
    Take: TAKE,
}
"""What the log calls the operations that have no name of their own: with a number after it, in the order of issue."""

NOWHERE = Buffer("no memory", Memory.PAGEABLE, 1, 1).at(0, 0, 0)
"""Where rows lie that are none."""


def trace_of(noted: Sequence[CheckedOperation], log: Sequence[tuple[object, Moment]], regions: MemoryRegions) -> Trace:
    """The operations as issued, and what the log says of them; an operation that has not ended has no end."""
    program = tuple(Issued(0, LOOP, step, _placed(each.operation, regions)) for step, each in enumerate(noted))
    moments: dict[tuple[object, Moment], int] = {}
    for at, entry in enumerate(log):
        if entry[1] is Moment.BEGIN:
            moments.setdefault(entry, at)
        else:
            moments[entry] = at  # queries that are one operation end with the last
    entries = [(name, moment, index) for index, name in enumerate(_names(noted)) for moment in Moment if (name, moment) in moments]
    entries.sort(key=lambda entry: moments[entry[0], entry[1]])  # accesses of one action share its moments
    return Trace(program, tuple(TraceEvent(index, moment) for _, moment, index in entries))


def _names(noted: Sequence[CheckedOperation]) -> Iterator[str]:
    """What the log calls each operation."""
    numbers = Counter[str]()
    for each in noted:
        kind = FREE if each.frees else KINDS.get(type(each.operation))
        if kind is None:
            yield each.what
        else:
            yield f"{kind} {numbers[kind]}"
            numbers[kind] += 1


def _placed(operation: Operation, regions: MemoryRegions) -> Operation:
    """An operation on buffers instead of addresses."""

    def place(rows: Access) -> Rows:
        assert isinstance(rows, Rows), "bytes are noted as runs"
        region = regions.find(rows.start, rows.count) if rows.count else None
        if region is None:
            return NOWHERE
        buffer = Buffer(f"{region.memory.value} {region.number}", region.memory, 1, len(region.bytes))
        return buffer.at(0, rows.start - region.start, rows.count)

    return placed(operation, place)
