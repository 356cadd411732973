"""What every scheme must stand on concrete instances: no race, and the right rows however its copies are held back."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import islice

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import SyncEvent, SyncStream, WaitEvent, reads
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import CALLER, Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.search.instances import instances
from kvstage_model.simulation.simulator import Simulation, simulate

Calls = tuple[Scheme, ...]


def some(function: SchemeFunction, every: int = 1, choose: Callable[[Calls], bool] = lambda calls: True) -> list[tuple[Calls, str]]:
    """Small instances of one call and of two that move rows, with their values in words: each `every`-th of those chosen."""
    chosen = ((calls, words) for calls, words in instances(function) if rows(calls) and choose(calls))
    return list(islice(chosen, 0, None, every))


def rows(calls: Sequence[Scheme]) -> int:
    """The rows that all calls move."""
    return sum(scheme.result.length for scheme in calls if scheme.result is not None)


def right(calls: Calls, words: str) -> int:
    """No race and, with each half of each operation held back, no wrong row. The number of rows that were judged."""
    assert list(races(unroll(calls))) == [], words
    judged = 0
    for schedule, simulation in delays(partial(simulate, calls)):
        assert not simulation.wrong, f"{words}, {schedule}: {simulation.wrong[0]}"
        judged += delivered(simulation)
    return judged


def right_on_every_schedule(calls: Calls, words: str, most: int = 2000) -> int:
    """The same under every schedule there is. The number of rows that were judged."""
    judged = 0
    for schedule, simulation in exhaustive(partial(simulate, calls), most):
        assert not simulation.wrong, f"{words}, {schedule}: {simulation.wrong[0]}"
        judged += delivered(simulation)
    return judged


def delivered(simulation: Simulation) -> int:
    """How many rows of a result the caller, the host or a kernel, read in a run."""
    return sum(len(reads(each.operation)) for each in simulation.trace.program if each.phase == CALLER)


def wrong_somewhere(calls: Calls) -> bool:
    """Whether some row is wrong with some half held back."""
    return any(simulation.wrong for _, simulation in delays(partial(simulate, calls)))


def unwaited(function: SchemeFunction) -> SchemeFunction:
    """The scheme with nothing that waits for anything."""
    return reduce(lambda kept, kind: edited(kept, without(Named(kind))), (SyncStream, SyncEvent, WaitEvent), function)
