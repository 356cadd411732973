"""The search for a counterexample: small concrete instances of a scheme, smallest first, with the axioms read as ints."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from ..language.parameters import ParameterError, SchemeFunction, declared
from ..language.scheme import Scheme
from ..ordering.program import beginning
from ..ordering.races import Race
from ..ordering.trace import Trace
from .instances import LONGEST, MOST_CALLS, MOST_ROWS, instances, moves_rows

MOST_INSTANCES = 5_000
"""Instances that are tried at most: with two or three numbers there are tens of thousands, and soon millions."""
MOST_PAIRS = 5_000_000
"""Pairs of operations that are looked at in all instances together: seconds, and few instances of a scheme of many steps."""
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


Fault = Callable[[tuple[Scheme, ...], str], Counterexample | None]


def search(function: SchemeFunction, fault: Fault, most: int | None = None) -> Counterexample | None:
    """The first small instance with a fault, by rows over all calls; None if none has, of the first `most` of them, or of
    MOST_INSTANCES.
    """
    pairs = 0
    for calls, values in islice(instances(function), most or MOST_INSTANCES):
        counterexample = fault(calls, values)
        pairs += len(beginning(calls)) ** 2
        if counterexample is not None or pairs > MOST_PAIRS:
            return counterexample
    return None


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
