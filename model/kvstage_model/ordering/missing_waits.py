"""What to do about a race: the order that is missing, in words, and the waits that would supply it.

A wait is proposed only if it helps: each candidate is put into the program, and the race finder must then find the
two accesses apart. It speaks of this program alone; whether the scheme is right with it, a proof must say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..language.operations import (
    Acquire,
    Event,
    OnStream,
    Operation,
    Post,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    event_of,
)
from ..language.scheme import CALLER
from .axioms import Moment
from .program import HOST, Issued, describe
from .races import HappensBefore, Race

MOST_EVENTS = 5
"""Events that are looked at, and so may be proposed: those that are recorded soonest hold up least."""
WAITS = SyncStream | SyncEvent | WaitEvent | Acquire | Take


@dataclass(frozen=True, eq=False)
class Advice:
    """Operations to add to a program, each right before the operation of that number, and what they are in words."""

    added: tuple[tuple[int, Operation], ...]
    words: str

    def applied(self, program: Sequence[Issued]) -> tuple[Issued, ...]:
        """The program with the operations added: each belongs to the step of the operation that it is put before."""
        changed: list[Issued] = []
        for number, issued in enumerate(program):
            changed += [replace(issued, operation=operation) for at, operation in self.added if at == number]
            changed.append(issued)
        return tuple(changed)


def lines(program: Sequence[Issued], race: Race) -> Iterator[str]:
    """What is missing, and below it the waits that would supply it, one a line, if there are any."""
    yield missing_edge(program, race)
    proposed = advice(program, race)
    if proposed:
        yield f"any of these would supply it, {place(program, race)}:"
    yield from (f"  {each.words}" for each in proposed)


def missing_edge(program: Sequence[Issued], race: Race) -> str:
    """Which order is missing between the two accesses of a race, in words, and the wait that comes too late, if any."""
    first, second = program[race.first], program[race.second]
    agent, late = _waiter(second), too_late(program, race)
    for_whom = "" if agent == HOST or not isinstance(first.operation, OnStream) else f" for {_who(first.operation.stream)}"
    who = f"{_who(agent)} does not wait{for_whom}"
    behind = "" if late is None else f"; {_who(agent)} waits only behind it, at [{describe(program[late])}]"
    return f"nothing orders the end of [{describe(first)}] before the begin of [{describe(second)}]: {who}{behind}"


def advice(program: Sequence[Issued], race: Race) -> tuple[Advice, ...]:
    """The waits that would keep the two accesses of a race apart, those that need nothing else first.

    They hold up what performs the second access, or the host, which then issues it later.
    """
    program = tuple(program[: race.second + 1])  # what is issued later orders nothing that was issued before
    return tuple(proposed for proposed in _candidates(program, race) if _apart(proposed, program, race))


def place(program: Sequence[Issued], race: Race) -> str:
    """Where the waits of `advice` belong, in words."""
    second = program[race.second]
    return f"right before [{describe(second)}]" if _returned(program, race) is None else f"before call {second.call} returns"


def _returned(program: Sequence[Issued], race: Race) -> int | None:
    """Where the call returns whose caller makes the second access: only up to there can a scheme still wait for the first."""
    second = program[race.second]
    returned = next((k for k, each in enumerate(program) if (each.call, each.phase) == (second.call, CALLER)), race.second)
    return returned if second.phase == CALLER and returned > race.first else None


def _candidates(program: Sequence[Issued], race: Race) -> Iterator[Advice]:
    """Waits for an event that is recorded already, for the whole stream, and for a new event, by each agent that can wait."""
    first, agent = program[race.first].operation, _waiter(program[race.second])
    returned, new = _returned(program, race), _unused(program)
    at = race.second if returned is None else returned
    if isinstance(first, Release):
        yield Advice(((at, Acquire(first.target)),), "the host takes the rows back (Acquire)")
    if isinstance(first, Post):
        yield Advice(((at, Take(first.event)),), "the host takes the transfer (Take)")
    if not isinstance(first, OnStream):
        return
    stream = first.stream
    for event in _recorded(program, race):
        yield Advice(((at, _wait(agent, event)),), f"{_who(agent)} waits for event {event.name}[{event.index}] ({_kind(agent)})")
    yield Advice(((at, SyncStream(stream)),), f"the host waits for stream {stream} (SyncStream)")
    record = f"a new event is recorded on stream {stream} right behind the first access"
    for waiter in dict.fromkeys((agent, HOST)):
        words = f"{record}, and {_who(waiter)} waits for it ({_kind(waiter)})"
        yield Advice(((race.first + 1, RecordEvent(new, stream)), (at, _wait(waiter, new))), words)


def _recorded(program: Sequence[Issued], race: Race) -> list[Event]:
    """The first few events that are recorded on the first one's stream between the two."""
    between = [each.operation for each in program[race.first + 1 : race.second]]
    records = [each for each in between if isinstance(each, RecordEvent) and each.stream == program[race.first].agent]
    return list({_key(record.event): record.event for record in records}.values())[:MOST_EVENTS]


def _key(event: Event) -> tuple[str, int, int]:
    return event.name, event.index, event.call


def _unused(program: Sequence[Issued]) -> Event:
    """An event that the program does not have."""
    names = [event.name for event in map(event_of, (each.operation for each in program)) if event is not None]
    return Event(max([*names, ""], key=len) + "+")


def _wait(agent: str, event: Event) -> Operation:
    return SyncEvent(event) if agent == HOST else WaitEvent(agent, event)


def _apart(proposed: Advice, program: Sequence[Issued], race: Race) -> bool:
    changed = proposed.applied(program)
    first, second = (changed.index(program[number]) for number in (race.first, race.second))
    return HappensBefore(changed).apart(first, second)


def too_late(program: Sequence[Issued], race: Race) -> int | None:
    """The first wait after the second access, in its call and by the agent to wait, by whose end the first has ended."""
    call, agent, order = program[race.second].call, _waiter(program[race.second]), HappensBefore(program)
    behind = (k for k in range(race.second + 1, len(program)) if program[k].call == call)
    waits = (k for k in behind if isinstance(program[k].operation, WAITS) and program[k].agent == agent)
    return next((k for k in waits if order.ordered(race.first, Moment.END, k, Moment.END)), None)


def _waiter(issued: Issued) -> str:
    """Who can wait before an operation: its stream, or the host that issues it. A card waits for nothing: the host must."""
    return issued.operation.stream if isinstance(issued.operation, OnStream) else HOST


def _who(agent: str) -> str:
    return "the host" if agent == HOST else f"stream {agent}"


def _kind(agent: str) -> str:
    return SyncEvent.__name__ if agent == HOST else WaitEvent.__name__
