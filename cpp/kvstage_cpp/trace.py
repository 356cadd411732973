"""The log of a run as a trace of kvstage's, for `kvstage check`: what the program named is named so, calls are the program's.

The device's default stream is in order with others by itself; in the trace it waits for them through events of its own.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from kvstage_model import (
    Buffer,
    Copy,
    CopyBatch,
    Event,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Memory,
    Operation,
    QueryEvent,
    RecordEvent,
    Rows,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.traces import as_json

from .errors import CppError
from .program import Run
from .trace_memory import Region, Regions, paired

LOOP, CALLER = "loop", "caller"
GRAPH = Event("graph")
"""The event of a record or wait inside a graph, which has no name in the program."""


def trace_of(run: Run) -> str:
    """The trace as JSON. Raises CppError if the log doesn't make one: no operation, or rows that nothing names."""
    lines = run.log.trace
    arguments = [_arguments(fields[1]) for fields in lines if fields[0] == "call"]
    reading = _Reading(_regions(lines), bool(arguments))
    for fields in lines:
        reading.line(fields)
    if not reading.program or not reading.events:
        raise CppError("the run makes no trace: nothing was issued between kvstage_begin_call and the end")
    return as_json(Trace(tuple(reading.program), tuple(reading.events)), arguments)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise CppError(f"kvstage_begin_call was given {text[:40]!r}, which is no JSON: {error.msg}") from None
    if not isinstance(value, dict):
        raise CppError(f"kvstage_begin_call was given {text[:40]!r}: it must be an object with the arguments of the scheme")
    return value


def _regions(lines: list[list[str]]) -> Regions:
    named: list[Region] = []
    allocated: list[tuple[int, int, str]] = []
    touched: list[tuple[int, int]] = []
    for fields in lines:
        match fields:
            case ["buffer", begin, slots, rows, row_bytes, kind, name]:
                buffer = Buffer(name, Memory(kind), int(slots), int(rows))
                named.append(Region(_address(begin), buffer, int(row_bytes)))
            case ["memory", begin, size, kind]:
                allocated.append((_address(begin), int(size), kind))
            case _:
                touched += _touched(fields)
    return Regions(named, allocated, touched)


def _touched(fields: list[str]) -> Iterator[tuple[int, int]]:
    match fields:
        case ["copy", _, _, *box]:
            target, source = _boxes(box)
            yield from ((begin, begin + size) for begin, size in (*target, *source))
        case ["host_copy", target, source, size]:
            yield from ((begin, begin + int(size)) for begin in map(_address, (target, source)))
        case ["host_read" | "host_write", begin, size]:
            yield _address(begin), _address(begin) + int(size)


def _address(text: str) -> int:
    return 0 if text == "(nil)" else int(text, 16)


def _boxes(fields: list[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Target and source of a copy, as ranges of bytes: one for each row, or one in all if rows lie side by side."""
    target, source = map(_address, fields[:2])
    width, height, depth, *pitches = map(int, fields[2:])

    def box(begin: int, pitch: int, plane: int) -> list[tuple[int, int]]:
        return list(_box(begin, width, height, depth, pitch, plane))

    return box(target, pitches[0], pitches[2]), box(source, pitches[1], pitches[3])


def _box(begin: int, width: int, height: int, depth: int, pitch: int, plane: int) -> Iterator[tuple[int, int]]:
    for z in range(depth):
        if pitch == width or height == 1:
            yield begin + z * plane, width * height
        else:
            yield from ((begin + z * plane + y * pitch, width) for y in range(height))


class _Reading:
    """The lines of a log, one after the other, and the trace that they make."""

    def __init__(self, regions: Regions, calls: bool) -> None:
        self.program: list[Issued] = []
        self.events: list[TraceEvent] = []
        self._regions = regions
        self._call, self._phase, self._step = (-1 if calls else 0), LOOP, 0
        self._numbers: dict[str, int] = {}
        self._implicit: list[tuple[int, int]] = []
        self._before: dict[int, list[tuple[int, int]]] = {}
        self._orders = 0

    def line(self, fields: list[str]) -> None:
        """Takes one line in. What comes before the first call is not part of the trace."""
        match fields:
            case ["call", _]:
                self._call, self._phase, self._step = self._call + 1, LOOP, 0
            case ["caller"]:
                self._phase = CALLER
            case [kind, *rest] if self._call >= 0 and kind in _HOST:
                self._host(_HOST[kind](self._regions, rest))
            case [kind, number, *rest] if self._call >= 0 and kind in _STREAM:
                self._numbers[number] = self._add(_STREAM[kind](self._regions, rest))
                self._before[self._numbers[number]] = self._implicit
                self._implicit = []
            case ["after", stream, other] if self._call >= 0:
                event = Event("order of the default stream", self._orders)
                self._orders += 1
                self._implicit.append((self._add(RecordEvent(event, other)), self._add(WaitEvent(stream, event))))
            case ["begin", number] if number in self._numbers:
                for pair in self._before.pop(self._numbers[number], []):
                    for index in pair:
                        self._happens(index, Moment.BEGIN)
                        self._happens(index, Moment.END)
                self._happens(self._numbers[number], Moment.BEGIN)
            case ["end", number] if number in self._numbers:
                self._happens(self._numbers[number], Moment.END)

    def _add(self, operation: Operation) -> int:
        self.program.append(Issued(self._call, self._phase, self._step, operation))
        self._step += 1
        return len(self.program) - 1

    def _host(self, operation: Operation) -> None:
        last = self.program[-1].operation if self.program else None
        match last, operation:
            case QueryEvent(before, 0), QueryEvent(event, 0) if (before.name, before.index) == (event.name, event.index):
                return  # one "not yet" stands for all in a row
        number = self._add(operation)
        self._happens(number, Moment.BEGIN)
        self._happens(number, Moment.END)

    def _happens(self, number: int, moment: Moment) -> None:
        self.events.append(TraceEvent(number, moment))


def _one(regions: Regions, address: str, size: str) -> Rows:
    rows = list(regions.rows(_address(address), int(size)))
    if len(rows) != 1:
        raise CppError(f"the host touches {size} bytes in {len(rows)} slots of a buffer at once: note each slot's part by itself")
    return rows[0]


def _copy(regions: Regions, fields: list[str]) -> Operation:
    stream, *box = fields
    target, source = ([rows for begin, size in ranges for rows in regions.rows(begin, size)] for ranges in _boxes(box))
    pairs = tuple(paired(source, target))
    return Copy(stream, *pairs[0]) if len(pairs) == 1 else CopyBatch(stream, pairs)


def _fill(regions: Regions, fields: list[str]) -> Operation:
    stream, target, width, height, pitch = fields
    ranges = _box(_address(target), int(width), int(height), 1, int(pitch), 0)
    return Launch(stream, (), tuple(rows for begin, size in ranges for rows in regions.rows(begin, size)))


def _event(fields: list[str]) -> Event:
    return Event(fields[0], int(fields[1])) if fields else GRAPH


_HOST: dict[str, Callable[[Regions, list[str]], Operation]] = {
    "host_copy": lambda regions, fields: HostCopy(_one(regions, fields[1], fields[2]), _one(regions, fields[0], fields[2])),
    "host_read": lambda regions, fields: HostRead(_one(regions, *fields)),
    "host_write": lambda regions, fields: HostWrite(_one(regions, *fields)),
    "sync_stream": lambda _, fields: SyncStream(fields[0]),
    "sync_event": lambda _, fields: SyncEvent(_event(fields)),
    "query_event": lambda _, fields: QueryEvent(_event(fields), int(fields[2])),
}
_STREAM: dict[str, Callable[[Regions, list[str]], Operation]] = {
    "copy": _copy,
    "fill": _fill,
    "launch": lambda _, fields: Launch(fields[0]),
    "record": lambda _, fields: RecordEvent(_event(fields[1:]), fields[0]),
    "await": lambda _, fields: WaitEvent(fields[0], _event(fields[1:])),
}
