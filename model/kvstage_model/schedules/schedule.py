"""Schedules: who goes on next, the host or a stream, whenever a run has a choice."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ..language.operations import Acquire, Post, QueryEvent, RecordEvent, Release, SyncEvent, SyncStream, Take, WaitEvent
from ..ordering.axioms import Moment
from ..ordering.program import ELSEWHERE, HOST
from ..ordering.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Move:
    """What may happen next: the host goes on, or a stream does half of the bytes of its oldest work.

    `stream` is None for the host. `number` counts asynchronous operations as issued, from 0, over all streams;
    `half` is 0 when it begins, 1 when it ends. Both are 0 for the host. `needed`: the host is blocked until this has happened.
    `asks`, of the host: it is about to ask an event, so that what it does next may depend on the answer.
    """

    stream: str | None
    number: int = 0
    half: int = 0
    needed: bool = field(default=False, compare=False)
    asks: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return HOST if self.stream is None else f"stream {self.stream} (copy {self.number}, half {self.half})"


HOST_MOVES = Move(None)
HOST_ASKS = Move(None, asks=True)


class Schedule(Protocol):
    """Decides who goes on. Asked before each action of the host, and again after each move of a stream."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """One of `moves`, which is never empty: the host first if it isn't blocked, then busy streams by first use."""


class IssueOrder:
    """Streams do everything at once: what a run looks like if nothing is really asynchronous."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """A stream if one is busy."""
        return _eager(moves)

    def __str__(self) -> str:
        return "issue order"


class Late:
    """Nothing happens on a stream before the host is blocked, and then only what it waits for."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """The host if it can go on, or else what it needs; a machine that does not say what that is moves its first stream."""
        return next((move for move in moves if move.stream is None or move.needed), moves[0])

    def __str__(self) -> str:
        return "late"


@dataclass(frozen=True)
class Hold:
    """Asynchronous operation `index` waits before its begin (half 0) or its end (half 1) as long as anything else can move."""

    index: int
    half: int

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """Anything but the operation that is held back; other streams before the host."""
        others = tuple(move for move in moves if move.stream is None or (move.number, move.half) != (self.index, self.half))
        return _eager(others or moves)

    def __str__(self) -> str:
        return f"hold copy {self.index} before its {'end' if self.half else 'begin'}"


@dataclass(frozen=True)
class HoldPair:
    """Two asynchronous operations each wait before their end as long as anything else can move; `first` is the earlier one."""

    first: int
    second: int

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """Anything but the two that are held back; other streams before the host. Of the two, the later one."""
        held = ((self.first, 1), (self.second, 1))
        others = tuple(move for move in moves if move.stream is None or (move.number, move.half) not in held)
        return _eager(others) if others else max(moves, key=lambda move: move.number)

    def __str__(self) -> str:
        return f"hold copies {self.first} and {self.second} before their ends"


def _eager(moves: tuple[Move, ...]) -> Move:
    """The first stream's move, or else the host's."""
    return min(moves, key=lambda move: move.stream is None)


class ReplayError(Exception):
    """A schedule asks for a move that the run can't make: the code issues something else than it did when that was written down."""


class Replay:
    """The order of a trace, move by move. When it is used up, streams finish as the host needs it.

    Use a new one for each run. Raises ReplayError if the run can't follow.
    """

    def __init__(self, trace: Trace) -> None:
        self._moves = tuple(_moves(trace))
        self._next = 0

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """The trace's next move."""
        if self._next == len(self._moves):
            return moves[0]
        wanted = self._moves[self._next]
        for move in moves:
            if move.stream == wanted:
                self._next += 1
                return move
        agent = HOST if wanted is None else f"stream {wanted}"
        raise ReplayError(
            f"move {self._next} of the trace is {agent}, but only {', '.join(map(str, moves))} can go on: "
            "the code does not issue what the trace's program does"
        )

    def __str__(self) -> str:
        return f"replay of {len(self._moves)} moves"


def _moves(trace: Trace) -> Iterator[str | None]:
    """Who moves, one entry a move. A trace has no event for the issue of asynchronous work: the host issues it when it is due."""
    issued = 0
    for event in trace.events:
        operation, agent = trace.program[event.index].operation, trace.program[event.index].agent
        acts = agent == HOST and event.moment is (
            Moment.END if isinstance(operation, SyncStream | SyncEvent | Acquire | Take | QueryEvent) else Moment.BEGIN
        )
        if acts or agent != HOST:
            for _ in range(issued, event.index + 1):
                yield None
            issued = max(issued, event.index + 1)
        if agent != HOST and not isinstance(operation, RecordEvent | WaitEvent):  # those end by themselves
            yield f"{ELSEWHERE} {event.index}" if isinstance(operation, Release | Post) else agent


@dataclass
class Choices:
    """The first choices by number, then always number 0. Remembers how many there were to choose from."""

    first: tuple[int, ...]
    widths: list[int] = field(default_factory=list)

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """The next choice; a single move is none."""
        if len(moves) == 1:
            return moves[0]
        at = len(self.widths)
        self.widths.append(len(moves))
        number = self.first[at] if at < len(self.first) else 0
        if number >= len(moves):
            raise ReplayError(
                f"choice {at} of {self} is number {number}, but only {', '.join(map(str, moves))} can go on: "
                "the code does not issue what it did when these choices were written down"
            )
        return moves[number]

    def following(self) -> tuple[int, ...] | None:
        """The choices that come next, depth first; None after the last."""
        taken = [*self.first, *[0] * (len(self.widths) - len(self.first))]
        for at in reversed(range(len(taken))):
            if taken[at] + 1 < self.widths[at]:
                return (*taken[:at], taken[at] + 1)
        return None

    def __str__(self) -> str:
        return f"choices {' '.join(map(str, self.first)) or '0'}, then 0"
