"""The simulator: concrete schemes run on labelled memory under one schedule, and every wrong row is named."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never, cast

from ..language.buffers import Rows
from ..language.operations import (
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
    Post,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    covers,
    moves,
    reads,
    writes,
)
from ..language.scheme import CALLER, Scheme
from ..ordering.program import ELSEWHERE, Issued, unroll
from ..ordering.trace import Trace, TraceEvent
from ..schedules.schedule import Schedule
from .cells import Cells, demand_bounds, initially_filled
from .delivery import DeliveryCheck, Wrong
from .machine import Machine


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened, and every row that was not what its call promised."""

    trace: Trace
    wrong: tuple[Wrong, ...]


def simulate(calls: Sequence[Scheme], schedule: Schedule) -> Simulation:
    """Runs concrete schemes, one call after the other, and after each its caller, under one schedule.

    Buffers of the same name are the same memory in every call. Raises BoundsError before anything runs if an
    operation leaves its buffers.
    """
    program = unroll(calls)
    for issued in program:
        demand_bounds(issued)
    run = _Run(calls, schedule)
    for index, issued in enumerate(program):
        run.step(index, issued)
    run.finish()
    events = (TraceEvent(cast(int, label), moment) for label, moment in run.machine.log)
    return Simulation(Trace(program, tuple(events)), tuple(run.wrong))


class _Run:
    """One run of a program on labelled memory."""

    def __init__(self, calls: Sequence[Scheme], schedule: Schedule) -> None:
        self.machine = Machine(schedule)
        self.wrong: list[Wrong] = []
        self._calls = calls
        self._memory = Cells(initially_filled(calls))
        self._at_issue = Cells(initially_filled(calls))
        self._call = -1
        self._judge: DeliveryCheck | None = None
        self._judges: list[DeliveryCheck] = []
        self._released: dict[int, Rows] = {}
        self._returned: set[int] = set()
        self._posted: dict[Hashable, set[int]] = {}

    def step(self, index: int, issued: Issued) -> None:
        """The host issues the next operation."""
        if issued.call != self._call:
            self._leave()
            self._call = issued.call
            self._judge = DeliveryCheck(issued.call, self._calls[issued.call], self._at_issue)
            self._judges.append(self._judge)
        operation = issued.operation
        match operation:
            case Copy() | Gather() | Scatter() | CopyBatch():
                self.machine.issue(operation.stream, partial(self._moved, operation, index), index)
            case Release():
                self._released[index] = operation.target
                self.machine.issue(f"{ELSEWHERE} {index}", partial(self._written, operation, index), index)
            case Post():
                self._posted.setdefault(_key(operation.event), set()).add(index)
                self.machine.issue(f"{ELSEWHERE} {index}", partial(self._transferred, index, issued), index)
            case Take():
                posted = self._posted.get(_key(operation.event), set()).copy()
                self.machine.block(lambda: self._returned.issuperset(posted), index)
            case Acquire():
                handed = [n for n, rows in self._released.items() if covers(operation.target, rows)]
                self.machine.block(lambda: self._returned.issuperset(handed), index)
            case QueryEvent():  # "not yet" may come late: the machine does not hold it against the scheme
                if operation.answer:
                    self.machine.synchronize_event(_key(operation.event), index)
                else:
                    self.machine.host(_nothing, index)
            case Launch():
                self.machine.issue(operation.stream, partial(self._kernel, index, issued), index)
            case RecordEvent():
                self.machine.record(_key(operation.event), operation.stream, index)
            case WaitEvent():
                self.machine.wait_event(operation.stream, _key(operation.event), index)
            case SyncStream():
                self.machine.synchronize(operation.stream, index)
            case SyncEvent():
                self.machine.synchronize_event(_key(operation.event), index)
            case HostCopy() | HostRead() | HostWrite():
                self.machine.host(partial(self._host, index, issued), index)
            case _:
                assert_never(operation)
        by_caller = writes(operation) if issued.phase == CALLER else ()
        for access in by_caller:
            self.wrong.extend(self._judges[issued.call].found(access))
        self._happen(self._at_issue, operation, index)
        for access in by_caller:
            self._judges[issued.call].overwritten(access)

    @staticmethod
    def _happen(memory: Cells, operation: Operation, index: int, halves: tuple[int, ...] = (0, 1)) -> None:
        """Half of an operation's bytes, or all: rows are moved, or the bytes of another party put there."""
        for half in halves:
            for source, target in moves(operation):
                memory.move(source, target, half)
            if isinstance(operation, HostWrite | Launch | Release | Post):
                for access in writes(operation):
                    memory.stamp(access, index, half)

    def _moved(self, operation: Operation, index: int, half: int) -> None:
        self._happen(self._memory, operation, index, (half,))

    def _written(self, release: Release, index: int, half: int) -> None:
        """The other party writes released rows, and is done after the second half."""
        self._happen(self._memory, release, index, (half,))
        if half == 1:
            self._returned.add(index)

    def _transferred(self, index: int, issued: Issued, half: int) -> None:
        """A card moves what was posted, and is done after the second half."""
        self._kernel(index, issued, half)
        if half == 1:
            self._returned.add(index)

    def _kernel(self, index: int, issued: Issued, half: int) -> None:
        if half == 0 or not writes(issued.operation):  # what a kernel has written itself is not what it was handed
            self._read(issued)
        self._happen(self._memory, issued.operation, index, (half,))

    def _host(self, index: int, issued: Issued) -> None:
        self._read(issued)
        self._happen(self._memory, issued.operation, index)

    def _read(self, issued: Issued) -> None:
        """What the caller reads of a result is judged."""
        if issued.phase == CALLER:
            for access in reads(issued.operation):
                found = self._judges[issued.call].delivered(issued.step, access, self._memory)
                self.wrong.extend(wrong for wrong in found if wrong not in self.wrong)

    def finish(self) -> None:
        """Streams end what they have begun; the last call is judged."""
        self.machine.drain()
        self._leave()

    def _leave(self) -> None:
        if self._judge is not None:
            self.wrong.extend(self._judge.returned())


def _nothing() -> None:
    """What a host does that only looks."""


def _key(event: Event) -> Hashable:
    return event.name, event.index, event.call
