"""T2: right loops are (fill; use) over and over; a wait too few, or a fill without its use, is not, whether it races or not."""

from collections.abc import Iterator

import pytest

from kvstage_model import schemes
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import HostWrite, Operation, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Direction
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t2_single_row
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t2_single_row import T2
from tests.support.loops import WAIT, Body, Place, loop, staged, stored
from tests.support.solver import claimed
from tests.support.tiers import often

READ, WRITE = Direction.READ, Direction.WRITE


@pytest.mark.parametrize("function", [schemes.staged_read, schemes.staged_write, loop(staged, direction=READ)])
def test_a_right_loop_is_fill_and_use_over_and_over(function: SchemeFunction) -> None:
    assert judge(T2.of(function, "staged")).verdict is Verdict.PROVED


RACING: dict[str, SchemeFunction] = {
    "a read without its wait": edited(schemes.staged_read, without(Named(SyncStream))),
    "a write without its wait": edited(schemes.staged_write, without(Named(SyncStream))),
    "a ring's read without its wait": edited(schemes.ring_read, without(Named(SyncEvent))),
    "a ring's write without its record": edited(schemes.ring_write, without(Named(RecordEvent))),
}


@pytest.mark.parametrize("function", RACING.values(), ids=RACING.keys())
def test_without_a_wait_it_is_refuted(function: SchemeFunction) -> None:
    judgement = judge(T2.of(function, "broken"))
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.counterexample is not None
    assert "overlap" in judgement.counterexample.wrong


def test_without_its_wait_the_solver_does_not_prove_a_staged_loop() -> None:
    """No instance helps here: the solver alone."""
    for name in ("a read without its wait", "a write without its wait"):
        assert claimed(t2_single_row.queries(RACING[name])) is not Verdict.PROVED


def filled_twice(place: Place, i: int) -> Iterator[Operation]:
    """The rows that were fetched are overwritten before anybody used them, and every step waits."""
    yield place.fetch(i)
    yield WAIT
    yield place.scribble(i)
    yield place.take(i)


def never_used(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT


def used_before_its_fill(place: Place, i: int) -> Iterator[Operation]:
    """What a step takes is what the step before it fetched."""
    yield place.take(i)
    yield place.fetch(i)
    yield WAIT


def stored_after_a_scribble(place: Place, i: int) -> Iterator[Operation]:
    yield place.fill(i)
    yield HostWrite(place.staged(i))
    yield place.store(i)
    yield WAIT


ORDERED: dict[str, tuple[Body, Direction]] = {
    "filled twice before its use": (filled_twice, READ),
    "never used": (never_used, READ),
    "used before its fill": (used_before_its_fill, READ),
    "overwritten before it is stored": (stored_after_a_scribble, WRITE),
}


@pytest.mark.parametrize(("body", "direction"), often(ORDERED.values(), 1), ids=ORDERED.keys())
def test_a_fill_without_its_use_is_not_proved_though_nothing_races(body: Body, direction: Direction) -> None:
    """So T2 says more than T1: the order is right, and the rows are not."""
    function = loop(body, direction=direction)
    assert judge(T1.of(function, "loop")).verdict is Verdict.PROVED
    assert claimed(t2_single_row.queries(function)) is Verdict.UNKNOWN


def test_a_loop_that_stages_nothing_has_nothing_to_keep() -> None:
    assert not list(t2_single_row.queries(schemes.direct_read))
    assert judge(T2.of(schemes.direct_read, "direct")).verdict is Verdict.VACUOUS
    assert list(t2_single_row.queries(loop(stored, direction=WRITE)))
