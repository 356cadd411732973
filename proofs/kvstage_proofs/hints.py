"""What may help where a claim is neither proved nor broken: what the scheme does not tell the proof."""

from itertools import islice

from kvstage_model.operations import SyncEvent, WaitEvent
from kvstage_model.parameters import SchemeFunction
from kvstage_model.search import instances
from kvstage_model.trace import unroll, wording

from .alternation import T2
from .hazards import T1
from .obligation import Obligation
from .result import T3

BY_WAITS = (T1.name, T2.name, T3.name)
"""The theorems whose proofs look at the steps that waits aim at."""
TRIED = 24
"""Small instances in which waits are looked for: a guard may keep them out of the smallest."""


def hint(obligation: Obligation) -> str:
    """Which wait lacks its aim, if any: without one, the step whose record it is meant for is not in the window."""
    if obligation.statement.theorem not in BY_WAITS or not callable(obligation.subject):
        return ""
    function: SchemeFunction = obligation.subject
    issued = (each.operation for calls, _ in islice(instances(function), TRIED) for each in unroll(calls))
    waits = (each for each in issued if isinstance(each, SyncEvent | WaitEvent) and each.aim is None)
    aimless = next(waits, None)
    if aimless is None:
        return ""
    return f"; [{wording(aimless)}] has no aim: say which step's record it is meant for (aim=...), and the proof will look there"
