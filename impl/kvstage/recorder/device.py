"""Records what code asks of a device: every operation with the rows that it touches, as a `Trace`.

    device = RecordingDevice(ThreadDevice())
    with device.call():
        Stager(device, scheme="ring").read(pool, table, 0, 9).wait()
    trace = device.trace()

It is a device around a device, and takes what that one takes: handles of `view`, and tensors and arrays, of which
`recorder.memory` says which bytes they have. Buffers are named by what they are, "pinned 0", "device 1" and so on, or as
`name` says; operations are numbered in each call, as its steps. `kvstage_model.traces.check` finds the scheme's names for them.

When work began and ended, only a device can know. One that does has `timed` (see `Timed`), and `RecordingDevice(device,
timed=True)` asks for it. Without, work is put as late as the waits allow: an order that the host can't tell from what
happened.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import count, pairwise
from threading import get_ident
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Event, Operation, QueryEvent, RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.scheme import CALLER, LOOP, Scheme
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.schedule import Choices
from kvstage_model.simulation.simulator import simulate

from ..devices.device import Device, Index
from ..devices.lock import share_lock
from ..devices.named_streams import NamedStreams
from ..devices.timing import Span, now
from .memory import RecordedBuffers
from .operands import Operand, RecorderError, by_schemes_names, copied, gathered, host_copied, inside, scattered
from .times import RecordedOperation, measured

__all__ = ["Operand", "RecorderError", "RecordingDevice", "Timed"]

B = TypeVar("B")
E = TypeVar("E")


@runtime_checkable
class Timed(Protocol):
    """What a device has that knows when its work ran, such as `ThreadDevice` and `OpenCLDevice`."""

    def timed(self) -> AbstractContextManager[Sequence[Span]]:
        """A span, on the clock of `timing.now`, for everything that is put on a stream inside the `with`, as issued."""
        ...  # pragma: no cover


class RecordingDevice(Generic[B, E]):
    """A device that notes every call, and passes it on. It has all that the device inside has, under the same names.

    For one host thread at a time. It keeps what it has seen: memory that was viewed, and one entry for each operation.
    What raises is not noted.
    """

    def __init__(self, device: Device[B, E], *, timed: bool = False) -> None:
        if timed and not isinstance(device, Timed):
            raise RecorderError(f"{type(device).__name__} does not know when its work runs: record it without timed=True")
        self._device = device
        share_lock(self, device)
        self.noted: list[RecordedOperation] = []
        """Everything that was noted, each operation when its call was over."""
        self.memories = RecordedBuffers()
        """Which memory was touched."""
        self._events: dict[int, Event] = {}
        self._made: list[E] = []
        self._ticks = count()
        self._open = ExitStack()
        self._spans = self._open.enter_context(device.timed()) if timed and isinstance(device, Timed) else None
        self._call, self._phase, self._step = 0, LOOP, 0
        self._calls = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """What is issued inside is one call of a scheme; what comes after it, its caller's. Without any, all is one call."""
        self._call, self._phase, self._step = self._calls, LOOP, 0
        self._calls += 1
        try:
            yield
        finally:
            self._phase, self._step = CALLER, 0

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """What the buffer is called whose first byte is the tensor's, from its next use on. No two may have one name."""
        self.memories.name(tensor, name)

    def buffer(self, memory: Memory, tensor: torch.Tensor) -> Buffer:
        """The buffer that a view of this tensor is, or would be."""
        return self.memories.view(memory, tensor)

    @property
    def program(self) -> tuple[Issued, ...]:
        """What was issued so far, with buffers that share no byte."""
        return self._resolved(self.noted)

    def trace(self) -> Trace:
        """What was issued, and in which order it happened. Raises RecorderError if two host threads were at work at once."""
        noted = tuple(self.noted)
        for first, second in pairwise(noted):
            if first.thread != second.thread and second.begin < first.end:
                raise RecorderError("two host threads used the recorded device at once: a trace has one; record them one by one")
        program = self._resolved(noted)
        if self._spans is not None:
            return Trace(program, measured(noted, self._spans))
        lazy = Scheme("recorded", (), len(program), lambda i: (program[i].operation,))
        return Trace(program, simulate([lazy], Choices(())).trace.events)

    def note(self, operation: Operation) -> None:
        """Notes what the device doesn't see: what the host does with rows by itself."""
        begin = self._now()
        self._add(operation, begin, self._now())

    # -- the device's methods, noted

    def view(self, memory: Memory, tensor: torch.Tensor) -> Operand[B]:
        """The device's handle, with the name of the buffer."""
        return Operand(self._device.view(memory, tensor), self.buffer(memory, tensor))

    def copy(self, stream: str, source: Operand[B] | B, target: Operand[B] | B) -> None:
        """Notes a Copy; a Launch, if one side has gaps."""
        operation, begin = copied(self.memories, stream, source, target), self._now()
        self._device.copy(stream, inside(source), inside(target))
        self._add(operation, begin, self._now())

    def gather(self, stream: str, source: Operand[B] | B, index: Index, target: Operand[B] | B) -> None:
        """Notes a Gather; a Launch, if one side is no view."""
        operation, begin = gathered(self.memories, stream, source, index, target), self._now()
        self._device.gather(stream, inside(source), index, inside(target))
        self._add(operation, begin, self._now())

    def scatter(self, stream: str, source: Operand[B] | B, target: Operand[B] | B, index: Index) -> None:
        """Notes a Scatter; a Launch, if one side is no view."""
        operation, begin = scattered(self.memories, stream, source, target, index), self._now()
        self._device.scatter(stream, inside(source), inside(target), index)
        self._add(operation, begin, self._now())

    def host_copy(self, source: Operand[B] | B, target: Operand[B] | B) -> None:
        """Notes a HostCopy; reads and writes, if one side has gaps."""
        operations, begin = host_copied(self.memories, source, target), self._now()
        self._device.host_copy(inside(source), inside(target))
        for operation in operations:
            self._add(operation, begin, begin := self._now())

    def synchronize(self, stream: str) -> None:
        """Notes a SyncStream."""
        begin = self._now()
        self._device.synchronize(stream)
        self._add(SyncStream(stream), begin, self._now())

    def event(self) -> E:
        """The device's event."""
        made = self._device.event()
        self._event(made)
        return made

    def record(self, event: E, stream: str) -> None:
        """Notes a RecordEvent."""
        begin = self._now()
        self._device.record(event, stream)
        self._add(RecordEvent(self._event(event), stream), begin, self._now())

    def wait_event(self, stream: str, event: E) -> None:
        """Notes a WaitEvent."""
        begin = self._now()
        self._device.wait_event(stream, event)
        self._add(WaitEvent(stream, self._event(event)), begin, self._now())

    def order_after(self, stream: str, after: object) -> None:
        """Notes a record and a stream's wait, as the caller's. If the caller's streams are not the device's own, it is passed on.

        An event of the device's own, by which calls of a stager come after earlier ones, is noted everywhere.
        """
        with self._as_callers():
            if getattr(type(self._device), "order_after", None) is NamedStreams.order_after:
                NamedStreams.order_after(self, stream, after)
                return
            begin = self._now()
            self._device.order_after(stream, after)
            if id(after) in self._events:
                self._add(WaitEvent(stream, self._events[id(after)]), begin, self._now())

    def order_before(self, event: E, stream: object) -> None:
        """Notes a stream's wait, as the caller's, or passes it on."""
        with self._as_callers():
            known = getattr(type(self._device), "order_before", None) is NamedStreams.order_before
            NamedStreams.order_before(self, event, stream) if known else self._device.order_before(event, stream)

    def wait(self, event: E) -> None:
        """Notes a SyncEvent."""
        begin = self._now()
        self._device.wait(event)
        self._add(SyncEvent(self._event(event)), begin, self._now())

    def query(self, event: E) -> bool:
        """Notes a QueryEvent, with its answer; of queries in a row that say "not yet" just one, as long as all of them."""
        begin = self._now()
        answer = self._device.query(event)
        asked = self._event(event)
        last = self.noted[-1] if self.noted else None
        match last and last.issued.operation:
            case QueryEvent(before, 0) if before is asked and last and last.thread == get_ident() and not answer:
                self.noted[-1] = replace(last, end=self._now())
            case _:
                self._add(QueryEvent(asked, int(answer)), begin, self._now())
        return answer

    @property
    def closed(self) -> bool:
        """Whether the device inside is closed."""
        return self._device.closed

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """The device's memory."""
        allocated = self._device.allocate(memory, size)
        self.memories.allocated(memory, allocated)
        return allocated

    def close(self) -> None:
        """Closes the device inside; what was noted stays."""
        self._open.close()
        self._device.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def __enter__(self) -> "RecordingDevice[B, E]":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _as_callers(self) -> Iterator[None]:
        """What is noted inside is not the call's."""
        phase, step = self._phase, self._step
        self._phase = CALLER
        try:
            yield
        finally:
            self._phase, self._step = phase, step

    def _resolved(self, noted: Sequence[RecordedOperation]) -> tuple[Issued, ...]:
        return self.memories.resolved(by_schemes_names([each.issued for each in noted]))

    def _event(self, event: E) -> Event:
        if id(event) not in self._events:
            self._events[id(event)] = Event("event", len(self._events))
            self._made.append(event)
        return self._events[id(event)]

    def _now(self) -> int:
        return next(self._ticks) if self._spans is None else now()

    def _add(self, operation: Operation, begin: int, end: int) -> None:
        self.noted.append(RecordedOperation(Issued(self._call, self._phase, self._step, operation), get_ident(), begin, end))
        self._step += 1
