"""Drivers: they run code again and again, each time under another schedule that is worth it.

Up to the order of independent moves, code without a race has one schedule only. So schedules are explored over what
the code under test issues: each driver runs it again from its start and looks at what comes out.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from .schedule import Choices, Hold, HoldPair, IssueOrder, Late, Move, Schedule, T

MOST_SCHEDULES = 200_000
"""How many runs `exhaustive` makes before it gives up with an error."""


MOST_PAIRS = 64
"""How many pairs of operations `delays` holds back together: the nearest ones."""


class TooManySchedulesError(Exception):
    """An exhaustive exploration found more schedules than its limit: make the instance smaller."""


class NothingAsynchronousError(Exception):
    """The code under test issued no asynchronous operation: no schedule can show anything."""


def exhaustive(run: Callable[[Schedule], T], most: int = MOST_SCHEDULES) -> Iterator[tuple[Schedule, T]]:
    """Runs the code under every schedule. Raises TooManySchedulesError if there are more than `most`."""
    first: tuple[int, ...] | None = ()
    made = 0
    while first is not None:
        if made == most:
            raise TooManySchedulesError(f"more than {most} schedules: make the instance smaller, or use delays")
        schedule = Choices(first)
        yield schedule, run(schedule)
        made += 1
        first = schedule.following()


class _Counting(IssueOrder):
    """Issue order, counting asynchronous operations; `asked` is whether the host has asked an event."""

    def __init__(self) -> None:
        self.operations = 0
        self.asked = False

    def choose(self, moves: tuple[Move, ...]) -> Move:
        self.operations = max(self.operations, *(move.number + 1 for move in moves if move.stream is not None), 0)
        self.asked |= any(move.asks for move in moves)
        return super().choose(moves)


def delays(run: Callable[[Schedule], T]) -> Iterator[tuple[Schedule, T]]:
    """Runs the code in issue order, then late, then once for each half of each asynchronous operation, with that half held back.

    Every two accesses that may overlap do overlap in one of these runs. What code issues that asks events may depend on the
    answers, so such code also runs with two operations held back at once, for up to MOST_PAIRS pairs of those that issue order
    has. `run` must drain its machine. Raises NothingAsynchronousError if nothing was issued on a stream.
    """
    counting = _Counting()
    result = run(counting)
    if not counting.operations:
        raise NothingAsynchronousError("nothing was issued on a stream: there is nothing to hold back, and the run proves nothing")
    yield IssueOrder(), result
    late = Late()
    yield late, run(late)
    for index in range(counting.operations):
        for half in (0, 1):
            schedule = Hold(index, half)
            yield schedule, run(schedule)
    if counting.asked:
        for pair in islice(_pairs(counting.operations), MOST_PAIRS):
            yield pair, run(pair)


def _pairs(operations: int) -> Iterator[HoldPair]:
    """All pairs of operations, those that are issued one soon after the other first."""
    for distance in range(1, operations):
        for first in range(operations - distance):
            yield HoldPair(first, first + distance)
