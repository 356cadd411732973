"""Records what code asks of a device: every operation with the rows that it touches, as a `Trace`.

    device = RecordingDevice(ThreadDevice())
    with device.call():
        Stager(device, scheme="ring").read(pool, table, 0, 9).wait()
    trace = device.trace()

It is a device around a device. Buffers are named by what was viewed, "pinned 0", "device 1" and so on, or as `name` says;
operations are numbered in each call, as its steps. `kvstage_model.trace_check` finds the scheme's names for them.

When work began and ended, only a device can know. One that does has `timed` (see `Timed`), and `RecordingDevice(device,
timed=True)` asks for it. Without, work is put as late as the waits allow: an order that the host can't tell from what
happened.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, pairwise
from threading import get_ident
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch

from kvstage_model.buffers import Buffer, Listed, Memory, Paged, Rows
from kvstage_model.operations import (
    Copy,
    Event,
    Gather,
    HostCopy,
    Operation,
    QueryEvent,
    RecordEvent,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.schedules import Choices
from kvstage_model.scheme import CALLER, LOOP, Scheme
from kvstage_model.simulator import simulate
from kvstage_model.trace import Issued, Trace

from .device import Device, Index
from .device_lock import share_lock
from .errors import KVStageError
from .recorded_times import Noted, measured
from .times import Span, now

B = TypeVar("B")
E = TypeVar("E")


class RecorderError(KVStageError):
    """Something can't be recorded: an operand that is no run of rows of a view, or two host threads at once."""


@runtime_checkable
class Timed(Protocol):
    """What a device has that knows when its work ran, such as `ThreadDevice` and `OpenCLDevice`."""

    def timed(self) -> AbstractContextManager[Sequence[Span]]:
        """A span, on the clock of `times.now`, for everything that is put on a stream inside the `with`, in the order of issue."""
        ...  # pragma: no cover


@dataclass(frozen=True, slots=True, eq=False)
class Operand(Generic[B]):
    """A handle of the device inside, and what it is a handle on: a whole buffer, or a run of its rows."""

    handle: B
    buffer: Buffer
    rows: Rows | None = None

    def __getitem__(self, place: tuple[int, slice]) -> "Operand[B]":
        """The run of rows `[slot, start:stop]`."""
        slot, run = place
        handle: Any = self.handle
        start, stop = run.start, run.stop
        return Operand(handle[slot, run], self.buffer, Rows(self.buffer, slot, start, stop - start))


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
        self.noted: list[Noted] = []
        """Everything that was noted, each operation when its call was over."""
        self._buffers: dict[tuple[object, ...], Buffer] = {}
        self._names: dict[int, str] = {}
        self._events: dict[int, Event] = {}
        self._memory: list[torch.Tensor] = []
        self._made: list[E] = []
        self._ticks = count()
        self._open = ExitStack()
        self._spans = self._open.enter_context(device.timed()) if timed and isinstance(device, Timed) else None
        self._call, self._phase, self._step = 0, LOOP, 0
        self._calls = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """What is issued inside is one call of a scheme; what comes behind it, its caller's. Without any, all is one call."""
        self._call, self._phase, self._step = self._calls, LOOP, 0
        self._calls += 1
        try:
            yield
        finally:
            self._phase, self._step = CALLER, 0

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """What the buffer is called whose first byte is the tensor's, from its next view on. No two may have one name."""
        self._names[tensor.data_ptr()] = name

    def buffer(self, memory: Memory, tensor: torch.Tensor) -> Buffer:
        """The buffer that a view of this tensor is, or would be."""
        key = (memory, tensor.data_ptr(), tensor.shape, tensor.stride())
        if key not in self._buffers:
            named = self._names.get(tensor.data_ptr(), f"{memory.value} {len(self._buffers)}")
            self._buffers[key] = Buffer(named, memory, tensor.shape[0], tensor.shape[1])
            self._memory.append(tensor)  # so that no other memory gets its address
        return self._buffers[key]

    @property
    def program(self) -> tuple[Issued, ...]:
        """What was issued so far."""
        return tuple(noted.issued for noted in self.noted)

    def trace(self) -> Trace:
        """What was issued, and in which order it happened. Raises RecorderError where two host threads were at work at once."""
        noted = tuple(self.noted)
        for first, second in pairwise(noted):
            if first.thread != second.thread and second.begin < first.end:
                raise RecorderError("two host threads used the recorded device at once: a trace has one; record them one by one")
        program = tuple(each.issued for each in noted)
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

    def copy(self, stream: str, source: Operand[B], target: Operand[B]) -> None:
        """Notes a Copy."""
        operation, begin = Copy(stream, _rows(source), _rows(target)), self._now()
        self._device.copy(stream, source.handle, target.handle)
        self._add(operation, begin, self._now())

    def gather(self, stream: str, source: Operand[B], index: Index, target: Operand[B]) -> None:
        """Notes a Gather."""
        operation, begin = Gather(stream, _paged(source, index), _rows(target)), self._now()
        self._device.gather(stream, source.handle, index, target.handle)
        self._add(operation, begin, self._now())

    def scatter(self, stream: str, source: Operand[B], target: Operand[B], index: Index) -> None:
        """Notes a Scatter."""
        operation, begin = Scatter(stream, _rows(source), _paged(target, index)), self._now()
        self._device.scatter(stream, source.handle, target.handle, index)
        self._add(operation, begin, self._now())

    def host_copy(self, source: Operand[B], target: Operand[B]) -> None:
        """Notes a HostCopy."""
        operation, begin = HostCopy(_rows(source), _rows(target)), self._now()
        self._device.host_copy(source.handle, target.handle)
        self._add(operation, begin, self._now())

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
        """Passed on; the caller's own work is not seen, so nothing is noted."""
        self._device.order_after(stream, after)

    def order_before(self, event: E, stream: object) -> None:
        """Passed on, and not noted."""
        self._device.order_before(event, stream)

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
        return self._device.allocate(memory, size)

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

    def _event(self, event: E) -> Event:
        if id(event) not in self._events:
            self._events[id(event)] = Event("event", len(self._events))
            self._made.append(event)
        return self._events[id(event)]

    def _now(self) -> int:
        return next(self._ticks) if self._spans is None else now()

    def _add(self, operation: Operation, begin: int, end: int) -> None:
        self.noted.append(Noted(Issued(self._call, self._phase, self._step, operation), get_ident(), begin, end))
        self._step += 1


def _rows(operand: object) -> Rows:
    if not isinstance(operand, Operand) or operand.rows is None:
        raise RecorderError("a recorded operand must be a run of rows of a view, handle[slot, start:stop]")
    return operand.rows


def _paged(operand: object, index: Index) -> Paged:
    if not isinstance(operand, Operand) or operand.rows is not None:
        raise RecorderError("a recorded kernel must reach a pool, which is a whole view")
    slots, rows = divmod(index, operand.buffer.rows)
    places = tuple(zip(slots.tolist(), rows.tolist(), strict=True))
    return Paged(operand.buffer, Listed(places), 0, len(places))
