"""The search for a counterexample: small concrete instances of a scheme, smallest first, with the axioms read as ints."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

from .bounds import broken_bound, unaddressed
from .paired import PairedRows
from .parameters import ParameterError, SchemeFunction, declared, moves_rows, plain_values, values_of
from .races import HappensBefore, Race, races
from .ranges import Flags
from .runs import PagedRows, Piece, Pieces, Runs
from .schedules import IssueOrder, Replay, Schedule
from .scheme import CALLER, Scheme
from .simulator import simulate
from .trace import Issued, Trace, describe, unroll

MOST_ROWS = 3
"""Rows of the largest transfer that is tried in every small layout."""
MOST_CALLS = 2
"""Calls of the longest sequence that is tried."""
LONGEST = 8
"""Rows of the longest transfer that is tried at all, a row a block: a ring is used again only where it has fewer slots."""
MOST_INSTANCES = 5_000
"""Instances that are tried at most: with two or three numbers there are tens of thousands, and soon millions."""
LOOKED = (
    f"every transfer of up to {MOST_ROWS} rows in blocks of 1 and 2, in plain ones of up to {LONGEST} rows, "
    f"with up to {MOST_CALLS} calls"
)
LOOKED_AT_NUMBERS = f"every choice of numbers from 0 to {LONGEST} and the least three of each, with up to {MOST_CALLS} calls"
"""The same, of a scheme that declares no transfer."""


@dataclass(frozen=True, eq=False)
class Counterexample:
    """An instance that breaks a claim: its values and steps over all calls, the order of events, and what is wrong."""

    values: str
    steps: int
    trace: Trace
    wrong: str
    race: Race | None = None

    @property
    def schedule(self) -> tuple[str, ...]:
        """The order of events as text, one line an event; arrows mark the two accesses that overlap."""
        return tuple(self.trace.lines(*([self.race.first, self.race.second] if self.race else [])))

    def lines(self) -> Iterator[str]:
        """The counterexample as text: the instance, its schedule up to what goes wrong, and what that is."""
        yield f"instance: {self.values}"
        yield from self.schedule
        yield f"wrong: {self.wrong}"


def _steps(calls: tuple[Scheme, ...]) -> int:
    return sum(scheme.steps for scheme in calls)


Values: TypeAlias = dict[str, Any]
Fault = Callable[[tuple[Scheme, ...], str], Counterexample | None]


def search(function: SchemeFunction, fault: Fault, most: int | None = None) -> Counterexample | None:
    """The first small instance with a fault, by rows over all calls; None where none has, of the first `most` of them, or of
    MOST_INSTANCES.
    """
    found = (fault(calls, values) for calls, values in islice(instances(function), most or MOST_INSTANCES))
    return next((counterexample for counterexample in found if counterexample is not None), None)


def looked(subject: object) -> str:
    """How far a search looks, in words: for a scheme function or whatever else a claim is about."""
    try:
        parameters = declared(subject) if callable(subject) else ()
    except ParameterError:
        return LOOKED  # partitions are no schemes
    if not callable(subject) or not parameters:
        return LOOKED  # lemmas declare nothing that could be searched
    far = LOOKED if moves_rows(parameters) else LOOKED_AT_NUMBERS
    left = next(islice(instances(subject), MOST_INSTANCES, None), None)
    return far if left is None else f"the first {MOST_INSTANCES} instances, smallest first, of {far}"


def instances(function: SchemeFunction) -> Iterator[tuple[tuple[Scheme, ...], str]]:
    """Sequences of calls with concrete arguments, each once: every small layout, few rows first, and then longer transfers.

    Of a scheme without a transfer: every small choice of numbers, and then larger ones, one call before two.
    """
    parameters = declared(function)
    moving = moves_rows(parameters)
    seen = None if moving else set[str]()
    small = [(rows * calls, calls) for rows in range(1, MOST_ROWS + 1) for calls in range(1, MOST_CALLS + 1)]
    for total, calls in [(0, 1), *sorted(small)] if moving else [(calls, calls) for calls in range(1, MOST_CALLS + 1)]:
        yield from _called(function, values_of(parameters, total // calls), calls, seen)
    lengths = range(MOST_ROWS + 1, LONGEST + 1)
    longer = [(length, calls) for length in lengths for calls in range(1, MOST_CALLS + 1)]
    for length, calls in longer if moving else sorted(longer, key=lambda each: each[1]):  # pairs of numbers are many more
        yield from _called(function, plain_values(parameters, length), calls, seen)


def _called(
    function: SchemeFunction, all_values: Iterator[Values], calls: int, seen: set[str] | None
) -> Iterator[tuple[tuple[Scheme, ...], str]]:
    every = list(all_values)
    alike = _with_other_numbers(function, every) if calls > 1 else [[] for _ in every]
    for values, others in zip(every, alike, strict=True):
        for other in chain([values], (each for each in others if each is not values)):
            numbers = ", ".join(f"{name} = {_in_words(value, other[name])}" for name, value in values.items())
            words = f"{numbers}, {calls} call{'s' if calls > 1 else ''}"
            if seen is not None:  # larger numbers come with all that are less again
                if words in seen:
                    continue
                seen.add(words)
            yield tuple(function(**each) for each in (values, *[other] * (calls - 1))), words


def _with_other_numbers(function: SchemeFunction, every: list[Values]) -> list[list[Values]]:
    """What a later call may have, for each, itself included: the same transfers, and numbers that leave each buffer as large
    as it is. Those that have the same in common share one list.
    """
    if not any(type(value) is int for values in every[:1] for value in values.values()):
        return [[] for _ in every]
    alike: dict[object, list[Values]] = {}
    keys = []
    for values in every:
        moved = tuple(id(value) for value in values.values() if type(value) is not int)
        keys.append((moved, tuple(_kept(function(**values)).items())))
        alike.setdefault(keys[-1], []).append(values)
    return [alike[key] for key in keys]


def _kept(scheme: Scheme) -> dict[str, tuple[int, int]]:
    """The sizes of the buffers that are kept from call to call: all but the host's side of the result."""
    own = None if scheme.result is None else scheme.result.host.name
    return {buffer.name: (buffer.slots, buffer.rows) for buffer in scheme.buffers if buffer.name != own}


def _in_words(value: Any, later: Any) -> str:
    return value_in_words(value) if later is value else f"{value_in_words(value)}, then {value_in_words(later)}"


def value_in_words(value: Any) -> str:
    """The value of a parameter, as a report shows it."""
    if isinstance(value, PagedRows | Pieces) and not _length(value):
        return "no rows"
    if isinstance(value, PagedRows):
        blocks = (value.stop - 1) // value.block_size + 1
        table = [value.table(block) for block in range(blocks)]
        return f"rows {value.start}..{value.stop - 1}, blocks of {value.block_size}, table {table}"
    if isinstance(value, PairedRows):
        blocks = (value.small.stop - 1) // value.small.block_size // value.factor + 1
        larger = [value.table(block) for block in range(blocks)]
        return f"{value_in_words(value.small)}, and blocks of {value.block_size}, table {larger}"
    if isinstance(value, Runs):
        runs = [value.part(i) for i in range(value.number)]
        return "runs " + ", ".join(f"pool[{run.slot}].rows[{run.start}:{run.start + run.count}]" for run in runs)
    if isinstance(value, Pieces):
        places = [value.address(position) for position in range(value.length)]
        return f"pieces of up to {value.longest} rows, at " + ", ".join(f"pool[{slot}].rows[{row}]" for slot, row in places)
    if isinstance(value, Flags):
        return "answers " + " ".join(str(value(step)) for step in range(4)) + " .."
    return str(value)


def _length(value: PagedRows | Pieces[Piece]) -> int:
    return value.stop - value.start if isinstance(value, PagedRows) else value.length


def hazard(calls: tuple[Scheme, ...], values: str) -> Counterexample | None:
    """Two accesses to a common row, at least one a write, that may overlap."""
    program = unroll(calls)
    race = next(races(program), None)
    if race is None:
        return None
    first, second = program[race.first], program[race.second]
    trace = HappensBefore(program).schedule(race).until(race.first, race.second)
    wrong = f"[{describe(first)}] and [{describe(second)}] touch a common row and overlap"
    return Counterexample(values, _steps(calls), trace, wrong, race)


def wrong_rows(calls: tuple[Scheme, ...], values: str) -> Counterexample | None:
    """A row that is not the right one once the call has returned.

    Without a hazard all schedules of a program give the same rows, so one is enough; with one, the schedule in which
    the accesses overlap is tried.
    """
    outside = _breaking(calls, values, lambda issued: broken_bound(issued.operation))
    if outside is not None:
        return outside  # the simulator has no cells for these rows
    program = unroll(calls)
    tried: list[tuple[Schedule, Race | None]] = [(Replay(HappensBefore(program).schedule(race)), race) for race in races(program)]
    for schedule, race in (*tried, (IssueOrder(), None)):
        simulation = simulate(calls, schedule)
        if simulation.wrong:
            return Counterexample(values, _steps(calls), simulation.trace, str(simulation.wrong[0]), race)
    return None


def out_of_bounds(calls: tuple[Scheme, ...], values: str) -> Counterexample | None:
    """An operation whose rows leave their buffer, that overlaps itself, or by which the host touches the device's memory."""
    return _breaking(calls, values, _broken_demand)


def _broken_demand(issued: Issued) -> str | None:
    beyond = () if issued.phase == CALLER else unaddressed(issued.operation)  # the caller stands for whoever may come
    return broken_bound(issued.operation) or next((clause.name for clause in beyond), None)


def _breaking(calls: tuple[Scheme, ...], values: str, demand: Callable[[Issued], str | None]) -> Counterexample | None:
    program = unroll(calls)
    for index, issued in enumerate(program):
        broken = demand(issued)
        if broken is not None:
            wrong = f"[{describe(issued)}]: not so: {broken}"
            return Counterexample(values, _steps(calls), Trace(program[: index + 1], ()), wrong)
    return None
