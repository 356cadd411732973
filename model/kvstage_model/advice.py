"""What to do about a race: the order that is missing, in words, and the waits that would supply it.

A wait is proposed only where it helps: each candidate is put into the program, and the race finder must then find the
two accesses apart. It speaks of this program alone; whether the scheme is right with it, a proof must say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .axioms import Moment
from .operations import Event, OnStream, Operation, RecordEvent, SyncEvent, SyncStream, WaitEvent, event_of
from .races import HappensBefore, Race
from .scheme import CALLER
from .trace import HOST, Issued, describe

WAITS = SyncStream | SyncEvent | WaitEvent


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


def missing_edge(program: Sequence[Issued], race: Race) -> str:
    """Which order is missing between the two accesses of a race, in words, and the wait that comes too late, if any."""
    first, second = program[race.first], program[race.second]
    who = f"{_agent(second)} does not wait{'' if second.agent == HOST else f' for {_agent(first)}'}"
    late = _too_late(program, race)
    behind = "" if late is None else f"; {_agent(program[late])} waits only behind it, at [{describe(program[late])}]"
    return f"nothing orders the end of [{describe(first)}] before the begin of [{describe(second)}]: {who}{behind}"


def advice(program: Sequence[Issued], race: Race) -> tuple[Advice, ...]:
    """The waits that would keep the two accesses of a race apart, those that need nothing else first.

    They hold up whoever performs the second access, or the host, which then issues it later.
    """
    program = tuple(program[: race.second + 1])  # what is issued later orders nothing that was issued before
    return tuple(proposed for proposed in _candidates(program, race) if _apart(proposed, program, race))


def _candidates(program: Sequence[Issued], race: Race) -> Iterator[Advice]:
    """For an event that is recorded already, for a new one, and for the whole stream: the wait of each agent that can wait."""
    first, second = program[race.first], program[race.second]
    stream, at, place = first.agent, *_before_the_second(program, race)
    agents = (HOST,) if second.agent == HOST else (second.agent, HOST)
    for event in _recorded(program, race):
        for agent in agents:
            words = f"{_who(agent)} waits for event {event.name}[{event.index}] ({_kind(agent)}) {place}"
            yield Advice(((at, _wait(agent, event)),), words)
    yield Advice(((at, SyncStream(stream)),), f"the host waits for stream {stream} (SyncStream) {place}")
    new = _unused(program)
    for agent in agents:
        record = f"an event is recorded on stream {stream} right behind [{describe(first)}]"
        words = f"{record}, and {_who(agent)} waits for it ({_kind(agent)}) {place}"
        yield Advice(((race.first + 1, RecordEvent(new, stream)), (at, _wait(agent, new))), words)


def _before_the_second(program: Sequence[Issued], race: Race) -> tuple[int, str]:
    """Where a wait belongs, and in words: what the caller does can't be preceded by a wait of ours but before the return."""
    second = program[race.second]
    if second.phase != CALLER:
        return race.second, f"right before [{describe(second)}]"
    returned = next(k for k, each in enumerate(program) if (each.call, each.phase) == (second.call, CALLER))
    if returned > race.first:
        return returned, f"before call {second.call} returns"
    return race.second, f"right before [{describe(second)}]"


def _recorded(program: Sequence[Issued], race: Race) -> list[Event]:
    """The events that are recorded on the first one's stream between the two."""
    between = [each.operation for each in program[race.first + 1 : race.second]]
    records = [each for each in between if isinstance(each, RecordEvent) and each.stream == program[race.first].agent]
    return list({_key(record.event): record.event for record in records}.values())


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


def _too_late(program: Sequence[Issued], race: Race) -> int | None:
    """The first wait behind the second access, in its call, by whose end the first one has ended."""
    call, order = program[race.second].call, HappensBefore(program)
    behind = (k for k in range(race.second + 1, len(program)) if program[k].call == call)
    waits = (k for k in behind if isinstance(program[k].operation, WAITS))
    return next((k for k in waits if order.ordered(race.first, Moment.END, k, Moment.END)), None)


def _agent(issued: Issued) -> str:
    return _who(issued.operation.stream if isinstance(issued.operation, OnStream) else HOST)


def _who(agent: str) -> str:
    return "the host" if agent == HOST else f"stream {agent}"


def _kind(agent: str) -> str:
    return SyncEvent.__name__ if agent == HOST else WaitEvent.__name__
