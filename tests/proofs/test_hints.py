"""What may help where a claim is neither proved nor broken."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import z3

from kvstage_model import pipelines, schemes
from kvstage_model.operations import Operation, SyncEvent, WaitEvent
from kvstage_model.parameters import SchemeFunction
from kvstage_model.scheme import Scheme
from kvstage_model.variants import edited
from kvstage_proofs.bounds_theorem import T7
from kvstage_proofs.hazards import T1
from kvstage_proofs.hints import hint
from kvstage_proofs.judge import judge
from kvstage_proofs.loading import obligations
from kvstage_proofs.obligation import Theorem
from kvstage_proofs.query import Query
from kvstage_proofs.result import T3
from tests.proofs.claims import UNKNOWN, claim


def without_aims(kind: type) -> Callable[[Scheme], Scheme]:
    """An edit that takes the aims off the waits of one kind."""

    def aimless(operation: Operation) -> Operation:
        return (
            replace(operation, aim=None) if isinstance(operation, SyncEvent | WaitEvent) and type(operation) is kind else operation
        )

    return lambda scheme: replace(scheme, step=lambda i: map(aimless, scheme.step(i)))


RING = edited(pipelines.ring_read, without_aims(SyncEvent))


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (RING, "SyncEvent filled[0]"),
        (edited(pipelines.gather_read, without_aims(WaitEvent)), "WaitEvent free[0] on stream compute"),
    ],
)
@pytest.mark.parametrize("theorem", [T1, T3])
def test_a_wait_without_an_aim_is_named(function: SchemeFunction, named: str, theorem: Theorem[SchemeFunction]) -> None:
    text = hint(theorem.of(function, "mine"))
    assert text.startswith(f"; [{named}] has no aim: ")


@pytest.mark.parametrize("function", [pipelines.ring_read, pipelines.gather_read, schemes.staged_read])
def test_a_scheme_whose_waits_have_aims_gets_none(function: SchemeFunction) -> None:
    assert hint(T1.of(function, "mine")) == ""


def test_what_does_not_rest_on_waits_gets_none() -> None:
    assert hint(T7.of(RING, "mine")) == ""
    assert hint(claim(UNKNOWN)) == ""
    for obligation in obligations(("by_block", "lemmas")):
        assert hint(obligation) == ""


def test_an_unknown_verdict_shows_how_far_it_looked_and_the_hint() -> None:
    context = z3.Context()
    true = z3.BoolVal(True, context)
    open_ = replace(T1.of(RING, "mine"), queries=lambda: iter([Query("a doubt", [], true, true, true)]))
    judgement = judge(open_)
    assert judgement.verdict is UNKNOWN
    looked, advice = judgement.reason.split("; [")
    assert looked.endswith(
        "in every transfer of up to 3 rows in blocks of 1 and 2, in plain ones of up to 8 rows, with up to 2 calls"
    )
    assert advice.startswith("SyncEvent filled[0]] has no aim: say which step's record it is meant for")
