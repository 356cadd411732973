"""Programs of the model, performed on a real device: when each operation was issued, began and ended, and its bytes."""

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from kvstage.devices.timing import now
from kvstage_model.language.buffers import Buffer, Listed, Memory, Paged, Rows
from kvstage_model.language.operations import (
    Copy,
    Event,
    Gather,
    HostCopy,
    OnStream,
    Operation,
    QueryEvent,
    RecordEvent,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore

BUFFERS = (Buffer("left", Memory.PINNED, 2, 3), Buffer("right", Memory.PINNED, 2, 3))
STREAMS = ("one", "two")
EVENTS = (Event("done", 0), Event("done", 1))
Times = dict[tuple[int, Moment], int]


@dataclass(frozen=True)
class Driven:
    """What was performed, when (nanoseconds), and what the buffers held at the end."""

    program: tuple[Issued, ...]
    at: Times
    memory: dict[str, torch.Tensor]


def drive(
    device,
    operations: Iterable[Operation],
    row_bytes: int = 64,
    hold: Callable[[str, int], bool] | None = None,
    finish: Callable[[str], None] | None = None,
) -> Driven:
    """Performs operations on a device, one after the other. A query that said "not yet" is left out: it orders nothing.

    At the end everything that is under way is waited for, stream by stream, with `finish` where it is given.
    """
    run = _Run(device, row_bytes)
    with device.timed() as spans, device.hold(hold) if hold else nullcontext():
        for operation in operations:
            run.perform(operation)
    for stream in run.streams:
        (finish or device.synchronize)(stream)
    program = tuple(Issued(0, "loop", step, operation) for step, (operation, _, _) in enumerate(run.done))
    queue = iter(spans)
    at: Times = {}
    for index, (operation, begin, end) in enumerate(run.done):
        at[index, Moment.ISSUE] = begin
        if isinstance(operation, OnStream):
            span = next(queue)
            assert span.begin, "everything has ended"
            begin, end = span.begin, span.end
        at[index, Moment.BEGIN], at[index, Moment.END] = begin, end
    assert next(queue, None) is None
    return Driven(program, at, run.memory)


class _Run:
    def __init__(self, device, row_bytes: int) -> None:
        self.device = device
        self.row_bytes = row_bytes
        self.memory: dict[str, torch.Tensor] = {}
        self.handles: dict[str, object] = {}
        self.events: dict[Hashable, object] = {}
        self.streams: set[str] = set()
        self.done: list[tuple[Operation, int, int]] = []

    def perform(self, operation: Operation) -> None:
        begin = now()
        act = self.ready(operation)
        answer = act()
        if isinstance(operation, QueryEvent):
            if not answer:
                return
            operation = replace(operation, answer=1)
        if isinstance(operation, OnStream):
            self.streams.add(operation.stream)
        self.done.append((operation, begin, now()))

    def ready(self, operation: Operation) -> Callable[[], object]:
        device = self.device
        match operation:
            case Copy(stream, source, target):
                return lambda: device.copy(stream, self.rows(source), self.rows(target))
            case Gather(stream, source, target):
                return lambda: device.gather(stream, self.whole(source.buffer), self.index(source), self.rows(target))
            case Scatter(stream, source, target):
                return lambda: device.scatter(stream, self.rows(source), self.whole(target.buffer), self.index(target))
            case HostCopy(source, target):
                return lambda: device.host_copy(self.rows(source), self.rows(target))
            case SyncStream(stream):
                return lambda: device.synchronize(stream)
            case RecordEvent(event, stream):
                return lambda: device.record(self.event(event), stream)
            case WaitEvent(stream, event):
                return lambda: device.wait_event(stream, self.event(event))
            case SyncEvent(event):
                return lambda: device.wait(self.event(event))
            case QueryEvent(event):
                return lambda: device.query(self.event(event))
        raise AssertionError(f"{operation} can't be driven")

    def whole(self, buffer: Buffer):
        if buffer.name not in self.handles:
            first = 1 + 97 * len(self.memory)  # no two buffers begin with the same bytes
            numbers = torch.arange(first, first + buffer.slots * buffer.rows).to(torch.uint8)
            values = numbers.repeat_interleave(self.row_bytes).view(buffer.slots, buffer.rows, self.row_bytes)
            self.memory[buffer.name] = values
            self.handles[buffer.name] = self.device.view(buffer.memory, values)
        return self.handles[buffer.name]

    def rows(self, rows: Rows):
        return self.whole(rows.buffer)[rows.slot, rows.start : rows.start + rows.count]

    def index(self, paged: Paged) -> np.ndarray:
        places = (paged.rows.address(paged.first + row) for row in range(paged.count))
        return np.array([slot * paged.buffer.rows + row for slot, row in places], np.int64)

    def event(self, event: Event):
        return self.events.setdefault((event.name, event.index), None) or self._new(event)

    def _new(self, event: Event):
        made = self.events[event.name, event.index] = self.device.event()
        return made


def broken(program: Sequence[Issued], at: Times) -> list[tuple[int, Moment, int, Moment]]:
    """The orders that the axioms give, and the times don't have: (operation, moment) before (operation, moment)."""
    order = HappensBefore(program)
    pairs = ((first, second) for first in range(len(program)) for second in range(len(program)) if first != second)
    return [
        (first, earlier, second, later)
        for first, second in pairs
        for earlier in Moment
        for later in Moment
        if order.ordered(first, earlier, second, later) and at[first, earlier] > at[second, later]
    ]


def kept_apart(program: Sequence[Issued]) -> Iterator[tuple[int, int]]:
    """Pairs of works of streams of which the axioms order the first one's end before the second one's begin."""
    order = HappensBefore(program)
    moving = [index for index, issued in enumerate(program) if isinstance(issued.operation, Copy | Gather | Scatter)]
    for first in moving:
        for second in moving:
            if first != second and order.ordered(first, Moment.END, second, Moment.BEGIN):
                yield first, second


def random_operations(rng: random.Random, length: int) -> list[Operation]:
    """Copies and kernels on two streams, and every operation that orders them."""

    def rows() -> Rows:
        buffer, start = rng.choice(BUFFERS), rng.randrange(2)
        return buffer.at(rng.randrange(buffer.slots), start, rng.randint(1, 3 - start))

    def apart(source: Rows) -> Rows:
        (other,) = (buffer for buffer in BUFFERS if buffer is not source.buffer)
        return other.at(rng.randrange(2), rng.randint(0, 3 - source.count), source.count)

    def paged(buffer: Buffer, count: int) -> Paged:
        places = rng.sample([(slot, row) for slot in range(2) for row in range(3)], count)
        return Paged(buffer, Listed(tuple(places)), 0, count)

    def one() -> Operation:
        stream, event, source = rng.choice(STREAMS), rng.choice(EVENTS), rows()
        target = apart(source)
        return rng.choices(
            [
                Copy(stream, source, target),
                Gather(stream, paged(source.buffer, target.count), target),
                Scatter(stream, source, paged(target.buffer, source.count)),
                HostCopy(source, target),
                RecordEvent(event, stream),
                WaitEvent(stream, event),
                SyncStream(stream),
                SyncEvent(event),
                QueryEvent(event, 0),
            ],
            [6, 2, 2, 1, 5, 4, 1, 2, 1],
        )[0]

    return [one() for _ in range(length)]
