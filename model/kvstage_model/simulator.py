"""The simulator: one host and its streams, one half-operation at a time, in the order that a schedule chooses.

`Machine` knows nothing of memory: it calls what it was given when the time has come. `simulate` gives it labelled
cells, the library's simulated device gives it tensors; so both see the same schedules.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never, cast

from .axioms import Moment
from .memory import Cells, Judge, Wrong, check, initially_filled
from .operations import Copy, HostCopy, HostRead, HostWrite, SyncStream
from .schedules import HOST_MOVES, Move, Schedule
from .scheme import Scheme
from .trace import Issued, Trace, TraceEvent, unroll


class DeadlockError(Exception):
    """The host is blocked and no stream can move."""


@dataclass(eq=False)
class _Work:
    """A queue's entry: work that a stream does in two halves."""

    move: Callable[[int], None]
    label: object
    number: int
    halves: int = 0

    @property
    def ended(self) -> bool:
        return self.halves == 2


class Machine:
    """A host and its streams. Each method is one action of the host, or blocks it; before each the schedule chooses.

    `log` lists (label, Moment.BEGIN or Moment.END) in the order of happening.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.log: list[tuple[object, Moment]] = []
        self._schedule = schedule
        self._queues: dict[str, deque[_Work]] = {}
        self._issued = 0

    def issue(self, stream: str, move: Callable[[int], None], label: object) -> None:
        """Puts work on a stream and goes on. `move(0)` is called when it begins, `move(1)` when it ends."""
        self._turn(_always)
        self._queues.setdefault(stream, deque()).append(_Work(move, label, self._issued))
        self._issued += 1

    def host(self, act: Callable[[], None], label: object) -> None:
        """The host does something itself, in one go."""
        self._turn(_always)
        self.log.append((label, Moment.BEGIN))
        act()
        self.log.append((label, Moment.END))

    def synchronize(self, stream: str, label: object) -> None:
        """Blocks the host until all that was issued on the stream before has ended (A4)."""
        queue = self._queues.get(stream)
        last = queue[-1] if queue else None
        self.block(lambda: last is None or last.ended, label)

    def block(self, until: Callable[[], bool], label: object) -> None:
        """Blocks the host until a condition holds. Raises DeadlockError where it doesn't hold when all streams are idle."""
        self.log.append((label, Moment.BEGIN))
        self._turn(until)
        self.log.append((label, Moment.END))

    def drain(self) -> None:
        """Blocks the host until all streams are idle. Leaves no mark in the log."""
        self._turn(lambda: not any(self._queues.values()))

    def _turn(self, ready: Callable[[], bool]) -> None:
        """Streams move until the schedule lets the host go on, which it can't before it is ready."""
        while True:
            streams = (_next(stream, queue[0]) for stream, queue in self._queues.items() if queue)
            moves = (HOST_MOVES, *streams) if ready() else tuple(streams)
            if not moves:
                raise DeadlockError("the host waits for something that never happens: all streams are idle")
            chosen = self._schedule.choose(moves)
            if chosen not in moves:
                raise ValueError(f"schedule {self._schedule} chose {chosen}, but only {', '.join(map(str, moves))} can move now")
            if chosen.stream is None:
                return
            self._advance(self._queues[chosen.stream])

    def _advance(self, queue: deque[_Work]) -> None:
        work = queue[0]
        half = work.halves
        if half == 0:
            self.log.append((work.label, Moment.BEGIN))
        work.move(half)
        if half == 1:
            self.log.append((work.label, Moment.END))
        work.halves += 1
        if work.ended:
            queue.popleft()


def _always() -> bool:
    return True


def _next(stream: str, work: _Work) -> Move:
    return Move(stream, work.number, work.halves)


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened, and every row that was not what its call promised."""

    trace: Trace
    wrong: tuple[Wrong, ...]


def simulate(calls: Sequence[Scheme], schedule: Schedule) -> Simulation:
    """Runs concrete schemes, one call after the other, and after each its caller, under one schedule.

    Buffers of the same name are the same memory in every call. Raises BoundsError before anything runs where an
    operation leaves its buffers.
    """
    program = unroll(calls)
    for issued in program:
        check(issued)
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
        self._call = -1
        self._judge: Judge | None = None

    def step(self, index: int, issued: Issued) -> None:
        """The host issues the next operation."""
        if issued.call != self._call:
            self._leave()
            self._call = issued.call
            self._judge = Judge(issued.call, self._calls[issued.call], self._memory)
        operation = issued.operation
        match operation:
            case Copy():
                self.machine.issue(operation.stream, partial(self._memory.move, operation.source, operation.target), index)
            case SyncStream():
                self.machine.synchronize(operation.stream, index)
            case HostCopy() | HostRead() | HostWrite():
                self.machine.host(partial(self._host, index, issued), index)
            case _:
                assert_never(operation)

    def _host(self, index: int, issued: Issued) -> None:
        operation, by_caller = issued.operation, issued.phase == "caller"
        if isinstance(operation, HostCopy):
            for half in (0, 1):
                self._memory.move(operation.source, operation.target, half)
        elif isinstance(operation, HostWrite):
            if by_caller and self._judge is not None:
                self.wrong.extend(self._judge.found(operation.target))
            self._memory.stamp(operation.target, index)
            if by_caller and self._judge is not None:
                self._judge.overwritten(operation.target)
        elif isinstance(operation, HostRead) and by_caller and self._judge is not None:
            self.wrong.extend(self._judge.delivered(issued.step, operation.source))

    def finish(self) -> None:
        """Streams end what they have begun; the last call is judged."""
        self.machine.drain()
        self._leave()

    def _leave(self) -> None:
        if self._judge is not None:
            self.wrong.extend(self._judge.returned())
