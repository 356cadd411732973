"""The simulator: one host and its streams, one half-operation at a time, in the order that a schedule chooses.

`Machine` knows nothing of memory: it calls what it was given when the time has come. `simulate` gives it labelled
cells, the library's simulated device gives it tensors; so both see the same schedules.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .axioms import Moment
from .schedules import HOST_MOVES, Move, Schedule


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
            moves = (*([HOST_MOVES] if ready() else []), *(_next(stream, queue[0]) for stream, queue in self._queues.items() if queue))
            if not moves:
                raise DeadlockError("the host waits for something that never happens: all streams are idle")
            chosen = self._schedule.choose(moves)
            if chosen not in moves:
                raise ValueError(f"schedule {self._schedule} chose {chosen}, which can't move now: choose one of {', '.join(map(str, moves))}")
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
