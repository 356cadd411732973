"""Faults: what the search looks for in one concrete instance: a race, a wrong row, an access that leaves its buffer."""

from collections.abc import Callable

from ..language.bounds import broken_bound, unaddressed
from ..language.scheme import CALLER, Scheme
from ..ordering.program import MOST_OPERATIONS, Issued, beginning, describe
from ..ordering.races import HappensBefore, Race, races
from ..ordering.trace import Trace
from ..schedules.schedule import IssueOrder, Replay, Schedule
from ..simulation.simulator import simulate
from .search import Counterexample, _steps


def hazard(calls: tuple[Scheme, ...], values: str) -> Counterexample | None:
    """Two accesses to a common row, at least one a write, that may overlap."""
    program = beginning(calls)
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
    program = beginning(calls)
    if len(program) == MOST_OPERATIONS:
        return None  # it may not have returned yet
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
    beyond = () if issued.phase == CALLER else unaddressed(issued.operation)  # the caller stands for any code that may come
    return broken_bound(issued.operation) or next((clause.name for clause in beyond), None)


def _breaking(calls: tuple[Scheme, ...], values: str, demand: Callable[[Issued], str | None]) -> Counterexample | None:
    program = beginning(calls)
    for index, issued in enumerate(program):
        broken = demand(issued)
        if broken is not None:
            wrong = f"[{describe(issued)}]: not so: {broken}"
            return Counterexample(values, _steps(calls), Trace(program[: index + 1], ()), wrong)
    return None
