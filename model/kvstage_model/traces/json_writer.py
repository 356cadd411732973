"""Traces as JSON: how they are written. `json_reader` reads them, `trace.schema.json` states their form.

One operation and one event a line: two traces can be compared with `diff`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..language.buffers import Access, Buffer, Paged, Rows
from ..language.operations import Acquire, Operation, reads, writes
from ..ordering.program import Issued
from ..ordering.trace import Trace, TraceEvent
from .errors import EmptyTraceError
from .json_fields import FIELDS, FORMAT, VERSION, FieldForm

Arguments = Mapping[str, Any]
"""The arguments of one call's scheme, as JSON values by parameter."""


def as_json(trace: Trace, arguments: Sequence[Arguments] = ()) -> str:
    """The trace as text, which ends in a newline. `arguments` has those of each call, if it is known what was called.

    Raises ValueError if two buffers of one name differ, and EmptyTraceError if nothing was issued or has happened.
    """
    if not trace.program or not trace.events:
        raise EmptyTraceError("the trace is empty: nothing was issued, or nothing has happened, so it can't show anything")
    sections: dict[str, Iterable[object]] = {
        "buffers": map(_buffer, _buffers(trace.program)),
        "program": map(_issued, trace.program),
        "events": map(_event, trace.events),
    }
    if arguments:
        sections = {"calls": arguments, **sections}
    lines = [f'{{"format": {json.dumps(FORMAT)}, "version": {VERSION}']
    for name, entries in sections.items():
        listed = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        lines.append(f',"{name}": [\n{listed}\n]')
    return "\n".join([*lines, "}"]) + "\n"


def _buffers(program: Sequence[Issued]) -> Iterator[Buffer]:
    """Each buffer that the program touches, in the order in which it does."""
    seen: dict[str, Buffer] = {}
    for issued in program:
        operation = issued.operation
        taken_back = (operation.target,) if isinstance(operation, Acquire) else ()  # which is no access
        for access in (*reads(operation), *writes(operation), *taken_back):
            buffer = access.buffer
            first = seen.setdefault(buffer.name, buffer)
            if _buffer(first) != _buffer(buffer):
                raise ValueError(f"two buffers are called {buffer.name!r}, of other sizes or memory: name each memory by itself")
    yield from seen.values()


def _buffer(buffer: Buffer) -> dict[str, object]:
    return {"name": buffer.name, "memory": buffer.memory.value, "slots": buffer.slots, "rows": buffer.rows}


def _issued(issued: Issued) -> dict[str, object]:
    place = {"call": issued.call, "phase": issued.phase, "step": issued.step}
    return place | {"kind": type(issued.operation).__name__} | _operation(issued.operation)


def _operation(operation: Operation) -> dict[str, object]:
    return {name: _part(part, getattr(operation, name)) for name, part in FIELDS[type(operation)].items()}


def _part(part: FieldForm, value: Any) -> object:
    match part:
        case FieldForm.ROWS | FieldForm.PLACES:
            return _access(value)
        case FieldForm.ACCESSES:
            return [_access(access) for access in value]
        case FieldForm.PAIRS:
            return [[_access(source), _access(target)] for source, target in value]
        case FieldForm.EVENT:
            return {"name": value.name, "index": value.index, "call": value.call}
        case FieldForm.NAME | FieldForm.ANSWER:
            return value


def _access(access: Access) -> dict[str, object]:
    if isinstance(access, Rows):
        return {"buffer": access.buffer.name, "slot": access.slot, "start": access.start, "count": access.count}
    return {"buffer": access.buffer.name, "places": places(access)}


def places(access: Paged) -> list[list[int]]:
    """Slot and row of each row that a kernel reaches."""
    return [list(access.rows.address(position)) for position in range(access.first, access.first + access.count)]


def _event(event: TraceEvent) -> dict[str, object]:
    happened: dict[str, object] = {"operation": event.index, "moment": event.moment.value}
    return happened if event.at is None else happened | {"at": event.at}
