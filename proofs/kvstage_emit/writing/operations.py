"""What each operation of a step is in C++: a call of the backend, or of a function that the caller gives."""

import re
from typing import Any

from kvstage_model.language.buffers import Access, Buffer, Paged, Rows
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
    moves,
)

from ..reading.number import CHOICE, Number, bound, twin
from ..reading.refusal import EmitError
from ..reading.statements import Reader
from ..reading.values import Answer, rows_text

MOST_EVENTS = 16
"""Events of a family whose number is a constant."""


class Writer(Reader):
    """Writes operations, and notes which streams, events, buffers and functions they need."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.streams: dict[str, str] = {}
        self.events: dict[str, str] = {}
        self.counts: dict[str, dict[str, None]] = {}
        self.buffers: dict[str, str] = {}
        self.memory: dict[str, str] = {}
        self.sites: list[str] = []
        self.linked: dict[tuple[str, str], None] = {}
        self.answers: dict[str, Answer] = {}
        self.paged: dict[int, str] = {}
        self.sizes: list[Any] = []
        self.phase = ""

    # -- names

    def _in_function(self, name: str, otherwise: str) -> str:
        """A parameter of the C++ function: under its name, or another one if that is taken anywhere so far."""
        taken = set().union(*self.lines.blocks)
        blocks, self.lines.blocks = self.lines.blocks, [taken]
        plain = re.sub(r"\W+", "_", name)
        fresh = self.lines.fresh(otherwise if plain in taken else name)
        self.lines.blocks = blocks
        self.lines.blocks[0].add(fresh)
        return fresh

    def buffer(self, buffer: Buffer) -> str:
        """The C++ name of a buffer."""
        if buffer.name not in self.buffers:
            self.buffers[buffer.name] = self._in_function(buffer.name, f"{buffer.name}_buffer")
            self.memory[buffer.name] = buffer.memory.value
        return self.buffers[buffer.name]

    def stream(self, name: str) -> str:
        """The C++ name of a stream."""
        if name not in self.streams:
            self.streams[name] = self._in_function(f"{name}_stream", f"{name}_stream_2")
        return self.streams[name]

    def event(self, event: Event) -> str:
        """One event of a family: the family must be as large as any of its indices asks."""
        if event.name not in self.events:
            self.events[event.name] = self._in_function(event.name, f"{event.name}_event")
        self.counts.setdefault(event.name, {})[self._size(event)] = None
        return f"{self.events[event.name]}[{bound(event.index, CHOICE)}]"

    def _size(self, event: Event) -> str:
        """How many events a family needs for one of its indices."""
        index = twin(event.index)
        if isinstance(index, int):
            return str(index + 1)
        if self.knowledge.at_least(index, 0):
            for most in (*range(1, MOST_EVENTS + 1), *self.sizes):
                known = twin(most)
                if known is not None and self.knowledge.at_least(known - index, 1):
                    return bound(most, CHOICE)
        raise EmitError(
            f"how many events {event.name!r} has is not plain: its index must lie below a number that the scheme declares, "
            "the slots of a buffer, or the steps of its loop"
        )

    # -- rows

    def rows(self, rows: Rows) -> str:
        """Rows as C++: under their name, if it is known here."""
        known = self.name_of_rows.get(id(rows))
        if known is not None and any(block is known[2] for block in self.lines.blocks):
            return known[1]
        return rows_text(rows, self.buffer(rows.buffer))

    def access(self, access: Access) -> str:
        """Rows, or rows of a transfer wherever they lie in the pool."""
        if isinstance(access, Rows):
            return self.rows(access)
        owner = getattr(access.rows.address, "__self__", None)
        if id(owner) not in self.paged:
            raise EmitError("a kernel reaches rows by an address that is no PagedRows' own")
        numbers = f"{bound(access.first, CHOICE)}, {bound(access.count, CHOICE)}"
        return f"{self.paged[id(owner)]}.part({self.buffer(access.buffer)}, {numbers})"

    def _accesses(self, accesses: tuple[Access, ...]) -> str:
        if any(isinstance(access, Paged) for access in accesses):
            raise EmitError("a Launch reaches rows of a transfer (Paged): Gather and Scatter do")
        return f"Accesses{{{', '.join(map(self.access, accesses))}}}"

    # -- operations

    def issue(self, operation: Operation) -> None:
        """Writes one operation where the lines have come to."""
        for source, target in moves(operation):
            if not isinstance(operation, HostCopy):
                self.linked[self.buffer(source.buffer), self.buffer(target.buffer)] = None
        self.lines.add(f"{self._call_of(operation)};")

    def _call_of(self, operation: Operation) -> str:
        match operation:
            case Copy(stream, source, target) | Gather(stream, source, target) | Scatter(stream, source, target):
                name = type(operation).__name__.lower()
                return f"backend.{name}({self.stream(stream)}, {self.access(source)}, {self.access(target)})"
            case CopyBatch(stream, copies):
                pairs = ", ".join(f"{{{self.access(source)}, {self.access(target)}}}" for source, target in copies)
                return f"backend.copy_batch({self.stream(stream)}, Copies{{{pairs}}})"
            case Launch(stream, reads, writes):
                return f"{self._site('kernel')}({self.stream(stream)}, {self._accesses(reads)}, {self._accesses(writes)})"
            case HostCopy(source, target):
                return f"backend.host_copy({self.access(source)}, {self.access(target)})"
            case HostRead(rows):
                return f"{self._site('host_read')}({self.access(rows)})"
            case HostWrite(rows):
                return f"{self._site('host_write')}({self.access(rows)})"
            case SyncStream(stream):
                return f"backend.sync_stream({self.stream(stream)})"
            case RecordEvent(event, stream):
                return f"backend.record_event({self.event(event)}, {self.stream(stream)})"
            case SyncEvent(event):
                return f"backend.sync_event({self.event(event)})"
            case WaitEvent(stream, event):
                return f"backend.wait_event({self.stream(stream)}, {self.event(event)})"
            case QueryEvent(event, answer):
                return self._query(event, answer)
            case Release(rows):
                return f"backend.release({self.access(rows)})"
            case Acquire(rows):
                return f"backend.acquire({self.access(rows)})"
        raise EmitError(f"there is no C++ for a {type(operation).__name__}")

    def _query(self, event: Event, answer: Any) -> str:
        if not isinstance(answer, Answer) or answer.number is not None:
            raise EmitError("the answer of a query is a flag of its own: declare a parameter of type Flags for it")
        call = f"backend.query_event({self.event(event)})"
        name = self.lines.fresh(answer.name)
        answer.number = Number(self.knowledge, name)
        return f"const Index {name} = {call} ? 1 : 0"

    def _site(self, kind: str) -> str:
        name = self._in_function(self.phase or kind, f"{self.phase or kind}_{kind}")
        self.sites.append(name)
        return name
