"""What may help if a claim is neither proved nor broken: what the scheme does not tell the proof."""

from collections.abc import Sequence
from itertools import islice

from kvstage_model.language.operations import Operation, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.program import beginning, wording
from kvstage_model.search.instances import instances

from ..obligation import Obligation
from ..theorems.t1_no_hazard import T1
from ..theorems.t2_single_row import T2
from ..theorems.t3_result import T3

BY_WAITS = (T1.name, T2.name, T3.name)
"""The theorems whose proofs look at the steps that waits aim at."""
TRIED = 24
"""Small instances in which waits are looked for: a guard may keep them out of the smallest."""


def hint(obligation: Obligation) -> str:
    """What keeps a wait from counting: its event is recorded on two streams, or it has no aim.

    Of an event on two streams an earlier record says nothing of a later one, so the proof draws nothing from it. Without an
    aim, the step whose record a wait is meant for is not in the window.
    """
    if obligation.statement.theorem not in BY_WAITS or not callable(obligation.subject):
        return ""
    function: SchemeFunction = obligation.subject
    issued = [each.operation for calls, _ in islice(instances(function), TRIED) for each in beginning(calls)]
    shared = _on_two_streams(issued)
    if shared is not None:
        return shared
    waits = (each for each in issued if isinstance(each, SyncEvent | WaitEvent) and each.aim is None)
    aimless = next(waits, None)
    if aimless is None:
        return ""
    return f"; [{wording(aimless)}] has no aim: say which step's record it is meant for (aim=...), and the proof will look there"


def _on_two_streams(issued: Sequence[Operation]) -> str | None:
    """The first event that is waited for and recorded on more than one stream, in words."""
    streams: dict[tuple[str, int], set[str]] = {}
    for record in (each for each in issued if isinstance(each, RecordEvent)):
        streams.setdefault((record.event.name, record.event.index), set()).add(record.stream)
    for wait in (each for each in issued if isinstance(each, SyncEvent | WaitEvent)):
        found = sorted(streams.get((wait.event.name, wait.event.index), ()))
        if len(found) > 1:
            event = f"event {wait.event.name}[{wait.event.index}]"
            return (
                f"; {event} is recorded on streams {' and '.join(found)}: from such an event the proof draws nothing; "
                "record an event of its own on each stream"
            )
    return None
