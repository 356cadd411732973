"""Calls: what a scheme owes to the calls around it, and what each lost edge or event lets in."""

import pytest

from kvstage_model import schemes
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import Launch, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.program import unroll
from kvstage_model.search.instances import instances
from kvstage_proofs.catalogue import between_calls
from kvstage_proofs.catalogue.between_calls import (
    PROVED,
    SESSIONS,
    UNDRAINED,
    both,
    fresh_events,
    on_the_same_stream,
    to_the_caller,
)
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t1_no_hazard
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.solver import claimed


def test_events_forgotten_between_calls_break_a_ring_that_does_not_drain() -> None:
    judgement = judge(T1.of(UNDRAINED, "ring", "write", Verdict.REFUTED))
    assert judgement.ok
    assert judgement.counterexample is not None
    assert "call 1" in judgement.counterexample.wrong
    assert claimed(t1_no_hazard.queries(UNDRAINED)) is Verdict.UNKNOWN


def test_either_of_the_two_mends_it() -> None:
    """Events that outlive the call, or a drain: each alone is enough."""
    kept = edited(schemes.ring_write, on_the_same_stream)
    drained = edited(schemes.ring_write, fresh_events)
    assert {claimed(t1_no_hazard.queries(function)) for function in (kept, drained)} == {Verdict.PROVED}


def test_what_is_used_on_another_stream_needs_the_drain() -> None:
    """Without it a host that uses the rows, or kernels of a stream of their own, come too early."""
    undrained = edited(schemes.ring_write, without(Named(SyncStream)))
    assert judge(T1.of(undrained, "ring", "write", Verdict.REFUTED)).ok
    stray = edited(schemes.direct_read, both(to_the_caller, lambda scheme: without(Named(SyncStream))(scheme)))
    assert claimed(t1_no_hazard.queries(stray)) is Verdict.PROVED


@pytest.mark.parametrize("which", [0, -1])
def test_a_caller_whose_edge_is_lost_is_refuted(which: int) -> None:
    handed = edited(schemes.direct_read, to_the_caller)
    calls_of, _ = next(found for found in instances(handed) if len(unroll(found[0])) > 4)
    edge = (*calls_of[0].prologue, *calls_of[0].epilogue)[which]
    assert judge(T1.of(edited(handed, without(Named.of(edge))), "direct", "read", Verdict.REFUTED)).ok


def test_the_caller_of_a_scheme_between_kernels_is_a_kernel() -> None:
    handed = [function for name, _, function in PROVED if "between kernels" in name]
    assert len(handed) == 6
    for function in handed:
        issued = [each for found, _ in instances(function) for each in unroll(found) if each.phase == "caller"]
        assert issued
        assert {(type(each.operation), each.operation.stream) for each in issued} == {(Launch, between_calls.CALLERS_STREAM)}  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "session"), SESSIONS)
def test_a_session_states_three_theorems_and_a_row_for_each_edge(name: str, session: SchemeFunction) -> None:
    stated = [each.statement for each in between_calls.obligations() if each.statement.scheme.split(" without ")[0] == name]
    assert [each.theorem for each in stated if each.expected is Verdict.PROVED] == ["T1", "T6", "T7"]
    rows = [each for each in stated if each.expected is Verdict.REFUTED]
    assert len(rows) >= 2
    assert {each.theorem for each in rows} == {"T1"}
