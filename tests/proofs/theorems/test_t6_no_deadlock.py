"""T6: a schedule always exists. In this language a wait is for what was issued before it, so no scheme alone can break T6.

What looks like a deadlock blocks nobody, and the machine shows it: a wait for an event that is recorded later captures no
record, and rows that were released to nobody are taken back at once. So the twins of the proof are axioms and schedules.
"""

from collections.abc import Iterator

import pytest

from kvstage_model import schemes
from kvstage_model.language.operations import Acquire, Event, Operation, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import by_row
from kvstage_model.ordering import axioms
from kvstage_model.ordering.axioms import Moment, Own
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.simulation.simulator import simulate
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t6_no_deadlock
from kvstage_proofs.theorems.t6_no_deadlock import T6
from tests.support.loops import WAIT, Body, Place, loop, staged
from tests.support.solver import claimed


def recorded_later(place: Place, i: int) -> Iterator[Operation]:
    """The host waits for an event that only the next line records."""
    yield SyncEvent(Event("filled", i))
    yield place.fetch(i)
    yield RecordEvent(Event("filled", i), "copy")


def for_the_next_step(place: Place, i: int) -> Iterator[Operation]:
    """A stream waits for what another one records a step later, and that one for the first: a circle, were waits to look ahead."""
    yield WaitEvent("copy", Event("b", i + 1), aim=i + 1)
    yield place.fetch(i)
    yield RecordEvent(Event("a", i), "copy")
    yield WaitEvent("other", Event("a", i + 1), aim=i + 1)
    yield RecordEvent(Event("b", i), "other")


def never_recorded(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield SyncEvent(Event("nobody's"))


def never_released(place: Place, i: int) -> Iterator[Operation]:
    yield Acquire(place.staged(i))
    yield place.scribble(i)


HARMLESS: dict[str, Body] = {
    "an event that is recorded later": recorded_later,
    "two streams that wait for each other's next step": for_the_next_step,
    "an event that is never recorded": never_recorded,
    "rows that are never released": never_released,
}


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_looks_like_a_deadlock_is_none(body: Body) -> None:
    function = loop(body)
    assert judge(T6.of(function, "loop")).verdict is Verdict.PROVED
    calls = [function(runs=by_row(PagedRows(lambda k: k, 3, 1, 0, 3)))] * 2
    simulation = simulate(calls, IssueOrder())  # the machine raises an error where nothing can move
    assert len(simulation.trace.events) == 2 * len(simulation.trace.program) > 0


def test_a_loop_of_nothing_is_vacuous() -> None:
    assert judge(T6.of(loop(lambda place, i: ()), "loop")).verdict is Verdict.VACUOUS


def test_an_axiom_that_no_schedule_keeps_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were every operation to end before its issue, or a wait before it began, there would be no schedule."""
    assert claimed(t6_no_deadlock.queries(schemes.staged_read)) is Verdict.PROVED

    def own(operation: Operation) -> Iterator[Own]:
        yield from axioms.own(operation)
        yield Own("wrong", Moment.END, Moment.ISSUE)

    monkeypatch.setattr(t6_no_deadlock, "own", own)
    assert claimed(t6_no_deadlock.queries(schemes.staged_read)) is Verdict.UNKNOWN
    assert judge(T6.of(loop(staged), "loop")).verdict is Verdict.UNKNOWN


WRONG: dict[str, dict[Moment, int]] = {
    "everything ends a turn late": {Moment.ISSUE: 0, Moment.BEGIN: 0, Moment.END: 3},
    "everything begins before its issue": {Moment.ISSUE: 1, Moment.BEGIN: 0, Moment.END: 1},
    "everything is issued at its end": {Moment.ISSUE: 2, Moment.BEGIN: 1, Moment.END: 1},
}


@pytest.mark.parametrize("at", WRONG.values(), ids=WRONG.keys())
def test_another_schedule_does_not_keep_the_axioms(at: dict[Moment, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer does come from the moments of the schedule that the claim names."""
    monkeypatch.setattr(t6_no_deadlock, "AT", at)
    assert claimed(t6_no_deadlock.queries(loop(lambda place, i: [place.fetch(i), WAIT, place.take(i)]))) is Verdict.UNKNOWN
