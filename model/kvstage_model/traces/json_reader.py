"""Traces as JSON: how they are read. A trace is an untrusted input, so nothing in it is taken on faith.

What comes out is a trace whose rows lie inside their buffers, and whose operations each begin and end at most once, in
that order. Whether it is a trace of some scheme, and free of races, `check` says.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..language.buffers import Access, Buffer, Listed, Paged, Rows
from ..language.operations import Event
from ..ordering.axioms import Moment
from ..ordering.program import ELSEWHERE, HOST, Issued
from ..ordering.trace import Trace, TraceEvent
from .errors import EmptyTraceError, TraceFormatError, TraceNotAFileError, TraceVersionError
from .json_fields import FIELDS, FORMAT, KINDS, VERSION, FieldForm
from .json_values import MOST_BYTES, entries, fields, memory, name, number, pair, parsed, refuse
from .json_writer import Arguments


@dataclass(frozen=True, eq=False)
class Document:
    """A trace, and the arguments of each of its calls if the file has them: JSON values, not looked at yet."""

    trace: Trace
    arguments: tuple[Arguments, ...]


def read_file(path: Path) -> Document:
    """The trace in a regular file. Raises TraceError as `read` does, and OSError if the file can't be read."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise TraceNotAFileError(f"{path} is no regular file: write the trace to one, for reading a pipe or a device may never end")
    with path.open("rb") as stream:
        return read(stream.read(MOST_BYTES + 1))


def read(text: bytes) -> Document:
    """The trace in a text. Raises TraceError: what is wrong, and where."""
    value = parsed(text)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise TraceFormatError(f"this is no trace: it must be an object whose format is {FORMAT!r}")
    if (version := value.get("version")) != VERSION or isinstance(version, bool):
        found = number(version, "version")
        raise TraceVersionError(f"this is a trace of version {found}, and this kvstage reads version {VERSION}")
    fields(value, "the trace", ("format", "version", "buffers", "program", "events"), ("calls",))
    buffers = _buffers(value["buffers"])
    program = tuple(_issued(entry, where, buffers, value["program"]) for where, entry in entries(value["program"], "program"))
    if not program:
        raise EmptyTraceError("the trace has no operation: record or write it again")
    for before, after in pairwise(program):
        if after.call < before.call:
            raise TraceFormatError(f"an operation of call {after.call} comes behind one of call {before.call}: calls are in order")
    arguments = tuple(_arguments(entry, where) for where, entry in entries(value.get("calls", []), "calls"))
    return Document(Trace(program, _events(value["events"], len(program))), arguments)


def _arguments(value: Any, where: str) -> Arguments:
    if not isinstance(value, dict):
        refuse(value, where, "an object: the arguments of a call by parameter")
    return value


def _buffers(value: Any) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    for where, entry in entries(value, "buffers"):
        parts = fields(entry, where, ("name", "memory", "slots", "rows"))
        called = name(parts["name"], f"{where}.name")
        if called in found:
            raise TraceFormatError(f"{where}.name is {called!r}, as that of a buffer before: name each memory by itself")
        found[called] = Buffer(
            called, memory(parts["memory"], f"{where}.memory"), *(number(parts[key], f"{where}.{key}") for key in ("slots", "rows"))
        )
    return found


def _issued(value: Any, where: str, buffers: dict[str, Buffer], program: list[Any]) -> Issued:
    kind = KINDS.get(value["kind"]) if isinstance(value, dict) and isinstance(value.get("kind"), str) else None
    if kind is None:
        raise TraceFormatError(f"{where}.kind must be one of {', '.join(KINDS)}")
    parts = FIELDS[kind]
    given = fields(value, where, ("call", "phase", "step", "kind", *parts))
    operation = kind(**{key: _part(part, given[key], f"{where}.{key}", buffers) for key, part in parts.items()})
    call, step = number(given["call"], f"{where}.call", most=len(program) - 1), number(given["step"], f"{where}.step")
    issued = Issued(call, name(given["phase"], f"{where}.phase"), step, operation)
    if given.get("stream") in (HOST, ELSEWHERE):
        raise TraceFormatError(f"{where}.stream is {given['stream']!r}, which is no name for a stream: {HOST} issues its work")
    return issued


def _part(part: FieldForm, value: Any, where: str, buffers: dict[str, Buffer]) -> Any:
    match part:
        case FieldForm.NAME:
            return name(value, where)
        case FieldForm.ROWS:
            return _rows(value, where, buffers)
        case FieldForm.PLACES:
            return _paged(value, where, buffers)
        case FieldForm.ACCESSES:
            return tuple(_access(entry, place, buffers) for place, entry in entries(value, where))
        case FieldForm.PAIRS:
            pairs = ((place, pair(entry, place)) for place, entry in entries(value, where))
            return tuple(tuple(_rows(half, place, buffers) for half in both) for place, both in pairs)
        case FieldForm.EVENT:
            parts = fields(value, where, ("name", "index", "call"))
            return Event(name(parts["name"], f"{where}.name"), *(number(parts[k], f"{where}.{k}") for k in ("index", "call")))
        case FieldForm.ANSWER:
            return number(value, where, most=1)


def _access(value: Any, where: str, buffers: dict[str, Buffer]) -> Access:
    paged = isinstance(value, dict) and "places" in value
    return _paged(value, where, buffers) if paged else _rows(value, where, buffers)


def _rows(value: Any, where: str, buffers: dict[str, Buffer]) -> Rows:
    parts = fields(value, where, ("buffer", "slot", "start", "count"))
    buffer = _buffer(parts["buffer"], where, buffers)
    slot, start, count = (number(parts[key], f"{where}.{key}") for key in ("slot", "start", "count"))
    if slot >= buffer.slots or start + count > buffer.rows:
        raise TraceFormatError(
            f"{where} is rows [{start}, {start + count}) of slot {slot}, "
            f"and {buffer.name!r} has {buffer.slots} slots of {buffer.rows} rows"
        )
    return Rows(buffer, slot, start, count)


def _paged(value: Any, where: str, buffers: dict[str, Buffer]) -> Paged:
    parts = fields(value, where, ("buffer", "places"))
    buffer = _buffer(parts["buffer"], where, buffers)
    places = tuple(_place(entry, place, buffer) for place, entry in entries(parts["places"], f"{where}.places"))
    return Paged(buffer, Listed(places), 0, len(places))


def _place(value: Any, where: str, buffer: Buffer) -> tuple[int, int]:
    slot, row = pair(value, where)
    return number(slot, where, most=buffer.slots - 1), number(row, where, most=buffer.rows - 1)


def _buffer(value: Any, where: str, buffers: dict[str, Buffer]) -> Buffer:
    called = name(value, f"{where}.buffer")
    if called not in buffers:
        raise TraceFormatError(f"{where}.buffer is {called!r}, which is none of the trace's buffers")
    return buffers[called]


def _events(value: Any, operations: int) -> tuple[TraceEvent, ...]:
    moments = {moment.value: moment for moment in (Moment.BEGIN, Moment.END)}
    expected, found, last = [Moment.BEGIN] * operations, list[TraceEvent](), 0
    for where, entry in entries(value, "events"):
        parts = fields(entry, where, ("operation", "moment"), ("at",))
        index = number(parts["operation"], f"{where}.operation", most=operations - 1)
        moment = moments.get(parts["moment"]) if isinstance(parts["moment"], str) else None
        if moment is None:
            refuse(parts["moment"], f"{where}.moment", f"one of {', '.join(moments)}")
        if moment is not expected[index]:
            raise TraceFormatError(f"{where}: operation {index} can't {moment.value} here: each begins once, then ends once")
        expected[index] = Moment.END if moment is Moment.BEGIN else Moment.ISSUE
        if found and ("at" in parts) != (found[0].at is not None):
            raise TraceFormatError(f"{where}: either all events have their time, `at`, or none has")
        at = number(parts["at"], f"{where}.at", last) if "at" in parts else None
        last = last if at is None else at
        found.append(TraceEvent(index, moment, at))
    if not found:
        raise EmptyTraceError("nothing begins or ends in the trace: record or write it again")
    return tuple(found)
