"""torch's stream sanitizer as an oracle: a program of the model, told to its event handler with the host as one more stream.

As shipped it sees no host: it hears of kernels on device tensors and of waits, and of no read of a pinned buffer. Told of
the host as a stream, with an event for each issue and each blocking wait, it has all that it needs. It knows memory by
pointers, not by ranges, so each row gets one of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

import torch.cuda._sanitizer as torch_sanitizer

from kvstage_model.language.buffers import Access, parts
from kvstage_model.language.operations import (
    Acquire,
    Event,
    OnStream,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
    covers,
    reads,
    writes,
)
from kvstage_model.ordering.program import Issued

HOST = "host"


def finds_a_race(program: Sequence[Issued]) -> bool:
    """Whether the sanitizer names an access of the program that is not ordered after one that it conflicts with."""
    told = _Told()
    for issued in program:
        told.tell(issued.operation)
    return bool(told.errors)


class _Told:
    def __init__(self) -> None:
        self.errors: list[torch_sanitizer.SynchronizationError] = []
        self._handler = torch_sanitizer.EventHandler()
        self._numbers = count(1)
        self._streams: dict[str, int] = {}
        self._events: dict[tuple[str, int, int], int] = {}
        self._rows: dict[tuple[str, int, int], int] = {}
        self._lent: list[tuple[str, Release]] = []

    def tell(self, operation: Operation) -> None:
        match operation:
            case RecordEvent(event, stream):
                self._handler._handle_event_record(self._event(event), self._stream(stream))
            case WaitEvent(stream, event):
                self._order(HOST, stream)
                self._handler._handle_event_wait(self._event(event), self._stream(stream))
            case SyncStream(stream):
                self._order(stream, HOST)
            case SyncEvent(event) | QueryEvent(event, 1):
                self._handler._handle_event_wait(self._event(event), self._stream(HOST))
            case QueryEvent():
                pass
            case Release():
                somebody = f"elsewhere {next(self._numbers)}"
                self._lent.append((somebody, operation))
                self._touch(somebody, operation)
            case Acquire(target):
                for somebody, release in self._lent:
                    if covers(target, release.target):
                        self._order(somebody, HOST)
            case _:
                self._touch(operation.stream if isinstance(operation, OnStream) else HOST, operation)

    def _touch(self, stream: str, operation: Operation) -> None:
        if stream != HOST:
            self._order(HOST, stream)
        written, read = self._pointers(writes(operation)), self._pointers(reads(operation))
        aliases: dict[int, list[str]] = defaultdict(list)
        name = type(operation).__name__
        self.errors += self._handler._handle_kernel_launch(self._stream(stream), read - written, written, written, name, aliases)

    def _order(self, first: str, second: str) -> None:
        """What comes on `second` from now on is after what is on `first` now."""
        event = next(self._numbers)
        self._handler._handle_event_creation(event)
        self._handler._handle_event_record(event, self._stream(first))
        self._handler._handle_event_wait(event, self._stream(second))

    def _stream(self, name: str) -> int:
        if name not in self._streams:
            self._streams[name] = next(self._numbers)
            self._handler._handle_stream_creation(self._streams[name])
        return self._streams[name]

    def _event(self, event: Event) -> int:
        key = event.name, event.index, event.call
        if key not in self._events:
            self._events[key] = next(self._numbers)
            self._handler._handle_event_creation(self._events[key])
        return self._events[key]

    def _pointers(self, accesses: Iterable[Access]) -> set[int]:
        rows = (rows for access in accesses for rows in parts(access))
        cells = ((rows.buffer.name, rows.slot, rows.start + k) for rows in rows for k in range(rows.count))
        return {self._pointer(cell) for cell in cells}

    def _pointer(self, cell: tuple[str, int, int]) -> int:
        if cell not in self._rows:
            self._rows[cell] = next(self._numbers)
            self._handler._handle_memory_allocation(self._rows[cell])
        return self._rows[cell]
