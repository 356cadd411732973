"""The machine: one host and its streams, one half-operation at a time, in the order that a schedule chooses.

It knows nothing of memory: it calls what it was given when the time has come. The simulator gives it labelled cells, the
library's simulated device gives it tensors; so both see the same schedules.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ..ordering.axioms import Moment
from ..schedules.schedule import HOST_ASKS, HOST_MOVES, Move, Schedule

PATIENCE = 64
"""How many queries in a row may answer "not yet" before the schedule must let what they ask for end: so polling loops end."""


class DeadlockError(Exception):
    """The host is blocked and no stream can move."""


@dataclass(eq=False)
class _Work:
    """A queue's entry: work that a stream does in two halves."""

    stream: str
    move: Callable[[int], None]
    label: object
    number: int
    halves: int = 0

    @property
    def ended(self) -> bool:
        return self.halves == 2


@dataclass(eq=False)
class _Mark:
    """A queue's entry that takes no time: a record, or a wait for one. It ends as soon as it is first and may."""

    stream: str
    label: object
    awaits: "_Mark | None" = None
    act: Callable[[], None] | None = None
    ended: bool = False


class Machine:
    """A host and its streams. Each method is one action of the host, or blocks it; before each the schedule chooses.

    `log` lists (label, Moment.BEGIN or Moment.END) in the order of happening; `moved` counts the halves that streams did.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.log: list[tuple[object, Moment]] = []
        self.moved = 0
        self._schedule = schedule
        self._queues: dict[str, deque[_Work | _Mark]] = {}
        self._last: dict[Hashable, _Mark] = {}
        self._issued = 0
        self._refused = 0
        self._moved_at_refusal = 0

    @property
    def idle(self) -> bool:
        """Whether no stream has anything to do."""
        return not any(self._queues.values())

    def pause(self) -> None:
        """The host is about to act: streams move as the schedule lets them."""
        self._turn(_always)

    def issue(self, stream: str, move: Callable[[int], None], label: object) -> None:
        """Puts work on a stream and goes on. `move(0)` is called when it begins, `move(1)` when it ends."""
        self._turn(_always)
        self._queues.setdefault(stream, deque()).append(_Work(stream, move, label, self._issued))
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
        self._block_for(last, label)

    def record(self, event: Hashable, stream: str, label: object) -> None:
        """Marks what was issued on a stream so far. The last record of an event is the one that counts (A5)."""
        self._turn(_always)
        mark = self._last[event] = _Mark(stream, label)
        self._queues.setdefault(stream, deque()).append(mark)
        self._settle()

    def wait_event(self, stream: str, event: Hashable, label: object) -> None:
        """A stream goes on only after what the event's last record marks now (A6)."""
        self._turn(_always)
        self._queues.setdefault(stream, deque()).append(_Mark(stream, label, self._last.get(event)))
        self._settle()

    def synchronize_event(self, event: Hashable, label: object) -> None:
        """Blocks the host until what the event's last record marks has ended; never recorded does not block (A5)."""
        self._block_for(self._last.get(event), label)

    def mark(self, stream: str, act: Callable[[], None], label: object) -> None:
        """Puts something on a stream that takes no time, is no work of its own, and can't be held back."""
        self._turn(_always)
        self._queues.setdefault(stream, deque()).append(_Mark(stream, label, act=act))
        self._settle()

    def query(self, event: Hashable) -> bool:
        """Whether what the event's last record marks has ended. After PATIENCE refusals in which nothing moved, it ends."""
        self._turn(lambda: True, asks=True)
        last = self._last.get(event)
        if last is None or last.ended:
            self._refused = 0
            return True
        self._refused = self._refused + 1 if self.moved == self._moved_at_refusal else 1
        self._moved_at_refusal = self.moved
        if self._refused < PATIENCE:
            return False
        self._refused = 0
        self._turn(lambda: last.ended, last)
        return True

    def block(self, until: Callable[[], bool], label: object) -> None:
        """Blocks the host until a condition holds. Raises DeadlockError if it doesn't hold when all streams are idle."""
        self.log.append((label, Moment.BEGIN))
        self._turn(until)
        self.log.append((label, Moment.END))

    def drain(self) -> None:
        """Blocks the host until all streams are idle. Leaves no mark in the log."""
        self._turn(lambda: self.idle)

    def _block_for(self, last: _Work | _Mark | None, label: object) -> None:
        self.log.append((label, Moment.BEGIN))
        self._turn(lambda: last is None or last.ended, last)
        self.log.append((label, Moment.END))

    def _needed(self, last: _Work | _Mark | None) -> str | None:
        """The stream whose oldest work stands in the way of `last`."""
        while last is not None and not last.ended:
            first = self._queues[last.stream][0]
            if isinstance(first, _Work):
                return first.stream
            last = first.awaits
        return None

    def _turn(self, ready: Callable[[], bool], last: _Work | _Mark | None = None, *, asks: bool = False) -> None:
        """Streams move until the schedule lets the host go on, which it can't before it is ready: before `last` has ended."""
        host = HOST_ASKS if asks else HOST_MOVES
        while True:
            needed = self._needed(last)
            heads = ((stream, queue[0]) for stream, queue in self._queues.items() if queue)
            streams = (
                Move(stream, work.number, work.halves, stream == needed) for stream, work in heads if isinstance(work, _Work)
            )
            moves = (host, *streams) if ready() else tuple(streams)
            if not moves:
                raise DeadlockError("the host waits for something that never happens: all streams are idle")
            chosen = self._schedule.choose(moves)
            if chosen not in moves:
                raise ValueError(f"schedule {self._schedule} chose {chosen}, but only {', '.join(map(str, moves))} can move now")
            if chosen.stream is None:
                return
            self._advance(self._queues[chosen.stream])

    def _advance(self, queue: deque[_Work | _Mark]) -> None:
        work = queue[0]
        assert isinstance(work, _Work), "only work is offered as a move"
        half = work.halves
        if half == 0:
            self.log.append((work.label, Moment.BEGIN))
        work.move(half)
        self.moved += 1
        if half == 1:
            self.log.append((work.label, Moment.END))
        work.halves += 1
        if work.ended:
            queue.popleft()
            self._settle()

    def _settle(self) -> None:
        """Marks that are first in their stream end, until none can: when they end makes no difference but to waiters."""
        settled = False
        while not settled:
            settled = True
            for queue in self._queues.values():
                while queue and isinstance(mark := queue[0], _Mark) and (mark.awaits is None or mark.awaits.ended):
                    if mark.act is not None:
                        mark.act()
                    mark.ended, settled = True, False
                    self.log += [(mark.label, Moment.BEGIN), (mark.label, Moment.END)]
                    queue.popleft()


def _always() -> bool:
    return True
