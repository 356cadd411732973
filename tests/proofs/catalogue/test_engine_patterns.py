"""Free flags, batches and lent rows: each loop is proved by the solver alone, and not without any part of what holds it."""

from collections.abc import Callable
from itertools import islice

import pytest

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import Acquire, QueryEvent, RecordEvent, Release, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import EPILOGUE, LOOP, Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.search.instances import instances
from kvstage_proofs.catalogue.engine_patterns import batched_read, lent_ring, obligations, polling_write
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t1_no_hazard
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.solver import claimed
from tests.support.tiers import often

RIGHT = {"polling": polling_write, "batched": batched_read, "lent": lent_ring}
BROKEN: dict[str, tuple[SchemeFunction, Callable[[Scheme], Scheme]]] = {
    "asks, and goes on": (polling_write, without(Named(SyncStream), LOOP)),
    "does not ask": (polling_write, without(Named(QueryEvent))),
    "asks for an event that nothing records": (polling_write, without(Named(RecordEvent))),
    "returns before its last copies": (polling_write, without(Named(SyncStream), EPILOGUE)),
    "returns before its batches": (batched_read, without(Named(SyncStream))),
    "lends rows that are still copied": (lent_ring, without(Named(SyncStream))),
    "never takes rows back": (lent_ring, without(Named(Acquire))),
}


@pytest.mark.parametrize("function", RIGHT.values(), ids=RIGHT.keys())
def test_the_solver_alone_proves_each_loop(function: SchemeFunction) -> None:
    assert claimed(t1_no_hazard.queries(function)) is Verdict.PROVED


@pytest.mark.parametrize(("function", "edit"), often(BROKEN.values(), 3), ids=BROKEN.keys())
def test_without_a_part_it_is_refuted_and_the_solver_does_not_prove_it(
    function: SchemeFunction, edit: Callable[[Scheme], Scheme]
) -> None:
    broken = edited(function, edit)
    assert judge(T1.of(broken, "broken", expected=Verdict.REFUTED)).ok
    assert claimed(t1_no_hazard.queries(broken)) is Verdict.UNKNOWN


def test_rows_that_are_lent_to_nobody_need_no_taking_back() -> None:
    """The twin of the lent ring: it is the loan that makes the taking back needed."""
    kept = edited(lent_ring, without(Named(Release)))
    assert claimed(t1_no_hazard.queries(edited(kept, without(Named(Acquire))))) is Verdict.PROVED


def test_every_loop_has_its_mistakes_in_the_catalogue() -> None:
    stated = [each.statement for each in obligations()]
    right = {each.subject for each in stated if each.expected is Verdict.PROVED}
    assert len(right) == len(RIGHT)
    assert sum(each.expected is Verdict.REFUTED for each in stated) == len(BROKEN)


def test_a_poll_is_answered_both_ways() -> None:
    """An instance in which it says yes, and one in which it says not yet: else the wait would be judged on one path only."""
    issued = [each.operation for calls, _ in islice(instances(polling_write), 200) for each in unroll(calls)]
    assert {operation.answer for operation in issued if isinstance(operation, QueryEvent)} == {0, 1}
