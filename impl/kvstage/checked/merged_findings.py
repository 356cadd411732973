"""One missing wait is one finding: of the races of a run, those that the same wait would end are one.

The wait that is missing is put into the program, everywhere the same two lines race, and the race finder looks again: what is
gone was the same mistake. What is left is another one.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from kvstage_model.language.operations import Event, OnStream, Operation, RecordEvent, SyncStream, WaitEvent, stream_of
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import Race, races

from .accesses import CheckedOperation, Program

MOST = 16
"""Findings that one run is searched for: each takes another look at the whole program."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The first race that a missing wait leaves, and how many more pairs of accesses the same wait would order."""

    race: Race
    more: int


def merged(program: Program) -> tuple[Merged, ...]:
    """The missing waits of a run, by the first race that each of them leaves; no more than MOST."""
    noted = program.noted
    issued = list(program.issued())
    numbers = {id(each): number for number, each in enumerate(issued)}
    left, found = _races(issued, numbers), list[Merged]()
    while left and len(found) < MOST:
        mistake = _mistake(noted, left[0])
        alike = [race for race in left if _mistake(noted, race) == mistake]
        issued = _waiting(issued, numbers, noted, alike, len(found))
        before, left = left, _races(issued, numbers)
        if left and left[0] == before[0]:  # no wait helps: the rest is told as one
            return (*found, Merged(before[0], len(before) - 1))
        found.append(Merged(before[0], len(before) - len(left) - 1))
    return tuple(found)


def _races(issued: list[Issued], numbers: dict[int, int]) -> list[Race]:
    """The races of a program with waits added, in the numbers of the operations that were there before."""
    return [Race(numbers[id(issued[race.first])], numbers[id(issued[race.second])]) for race in races(issued)]


def _mistake(noted: tuple[CheckedOperation, ...], race: Race) -> Hashable:
    """What two pairs of accesses have in common that are the same line of code, run twice."""
    first, second = noted[race.first], noted[race.second]
    return first.line, second.line, stream_of(first.operation), stream_of(second.operation), second.frees


def _waiting(
    issued: list[Issued], numbers: dict[int, int], noted: tuple[CheckedOperation, ...], alike: list[Race], round_: int
) -> list[Issued]:
    """The program in which each second access waits for all that the first one's stream was given before it."""
    waits: dict[int, list[Operation]] = {}
    for race in alike:
        first, second = noted[race.first].operation, noted[race.second].operation
        added = waits.setdefault(race.second, [])
        if isinstance(first, OnStream):
            added += _order(first.stream, second, Event(f"missing {round_} {first.stream}", race.second))
    changed: list[Issued] = []
    for each in issued:
        number = numbers.get(id(each))
        changed += [replace(each, operation=wait) for wait in waits.get(-1 if number is None else number, ())]
        changed.append(each)
    return changed


def _order(stream: str, second: Operation, event: Event) -> Iterator[Operation]:
    if isinstance(second, OnStream):
        yield RecordEvent(event, stream)
        yield WaitEvent(second.stream, event)
    else:
        yield SyncStream(stream)
