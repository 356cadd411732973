"""T4: the counts that schemes state are proved, others are refuted, and so are operations that no count is stated of."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import z3

from kvstage_model import schemes
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import Copy, Operation, SyncEvent, SyncStream
from kvstage_model.language.partitions import Runs
from kvstage_model.schemes.direct import DIRECT
from kvstage_model.schemes.loop import Loop, Steps, Tally, each_run
from kvstage_model.schemes.ring import RING, runs_late
from kvstage_model.schemes.staged import STAGED
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t4_counts, t4_fewest_waits
from kvstage_proofs.theorems.t4_counts import T4
from kvstage_proofs.theorems.t4_fewest_waits import T4_LOWER
from tests.support.loops import WAIT, Place, loop, staged
from tests.support.solver import claimed

COPIES, WAITS = Named(Copy), Named(SyncStream)


@pytest.mark.parametrize("counted", [STAGED.read, DIRECT.write, RING.read])
def test_the_counts_of_a_scheme_are_proved(counted: Loop) -> None:
    assert judge(T4.of(counted, "scheme")).verdict is Verdict.PROVED


def one_short(runs: Runs) -> tuple[int, int]:
    return 0, max(0, runs.number - 1)


def one_more(runs: Runs) -> tuple[int, int]:
    return 0, runs.number + 1


def one_late(runs: Runs) -> tuple[int, int]:
    return 1, runs.number + 1


@pytest.mark.parametrize("steps", [one_short, one_more])
def test_a_wrong_count_is_refuted(steps: Steps) -> None:
    counted = Loop(schemes.staged_read, {COPIES: steps, WAITS: each_run})
    assert claimed(t4_counts.queries(counted)) is Verdict.UNKNOWN
    judgement = judge(T4.of(counted, "staged"))
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.counterexample is not None
    assert "Copy is issued" in judgement.counterexample.wrong


def test_as_many_in_other_steps_is_not_proved() -> None:
    """Their number is right, so no instance breaks it."""
    counted = Loop(schemes.staged_read, {COPIES: one_late, WAITS: each_run})
    assert judge(T4.of(counted, "staged")).verdict is Verdict.UNKNOWN


LEFT_OUT: dict[str, tuple[Loop, str]] = {
    "a wait of the loop": (Loop(schemes.staged_read, {COPIES: each_run}), "SyncStream on stream copy"),
    "a copy of the loop": (Loop(schemes.staged_write, {WAITS: each_run}), "Copy on stream copy"),
    "the wait behind the loop": (Loop(schemes.direct_read, DIRECT.read.tally), "SyncStream on stream copy"),
    "a wait for an event": (Loop(schemes.ring_read, {COPIES: each_run}), "SyncEvent of 'filled'"),
    "a wait behind a loop that has one": (
        Loop(loop(staged, epilogue=lambda place: (WAIT,)), {COPIES: each_run, WAITS: each_run}),
        "SyncStream on stream copy",
    ),
}


@pytest.mark.parametrize(("counted", "named"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_counts_and_is_not_in_the_tally_is_refuted(counted: Loop, named: str) -> None:
    assert claimed(t4_counts.queries(counted)) is Verdict.UNKNOWN
    judgement = judge(T4.of(counted, "scheme"))
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.counterexample is not None
    assert judgement.counterexample.wrong == f"{named} is issued, and nothing is stated of it"


def test_without_that_look_a_tally_that_leaves_out_the_waits_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t4_counts, "_unstated", lambda *_: iter(()))
    assert claimed(t4_counts.queries(Loop(schemes.staged_read, {COPIES: each_run}))) is Verdict.PROVED


TALLY: Tally = {COPIES: each_run, WAITS: each_run}


@pytest.mark.parametrize("waits", [0, 2])
def test_a_wait_that_is_said_to_come_once_comes_once(waits: int) -> None:
    counted = Loop(loop(staged, epilogue=lambda place: (WAIT,) * waits), TALLY, (WAITS,))
    assert judge(T4.of(counted, "loop")).verdict is Verdict.REFUTED
    assert claimed(t4_counts.queries(counted)) is Verdict.UNKNOWN


def twice(place: Place, i: int) -> Iterator[Operation]:
    yield from staged(place, i)
    yield WAIT


def test_two_waits_a_step_are_not_one() -> None:
    counted = Loop(loop(twice), TALLY)
    assert judge(T4.of(counted, "loop")).verdict is Verdict.REFUTED
    assert claimed(t4_counts.queries(counted)) is Verdict.UNKNOWN


def test_a_count_that_is_stated_of_another_event_is_refuted() -> None:
    counted = Loop(schemes.ring_read, {COPIES: each_run, Named(SyncEvent, event="sent"): runs_late})
    assert judge(T4.of(counted, "ring", "read")).verdict is Verdict.REFUTED


# -- the fewest waits


def test_the_fewest_waits_are_proved() -> None:
    assert judge(T4_LOWER.of(None, "one buffer")).verdict is Verdict.PROVED


State = tuple[Any, ...]
MUTANTS: dict[str, Callable[..., State]] = {
    "a row too many in the buffer": lambda k, taken, fresh, pending, kw: (
        fresh + pending <= k + 1,
        taken + fresh <= kw,
        fresh >= 0,
    ),
    "nothing of the buffer": lambda k, taken, fresh, pending, kw: (taken >= 0, fresh >= 0, pending >= 0, taken + fresh <= kw),
    "rows taken alone": lambda k, taken, fresh, pending, kw: (fresh >= 0, pending >= 0, fresh + pending <= k, taken <= kw),
    "a row that no wait brought": lambda k, taken, fresh, pending, kw: (
        fresh + pending <= k,
        taken + fresh <= kw + 1,
        pending >= 0,
    ),
    "one row fewer than waits bring": lambda k, taken, fresh, pending, kw: (fresh + pending <= k, taken + fresh < kw, fresh >= 0),
    "nothing of the waits": lambda k, taken, fresh, pending, kw: (taken >= 0, fresh >= 0, pending >= 0, fresh + pending <= k),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_another_invariant_proves_nothing(mutant: Callable[..., State], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t4_fewest_waits, "invariant", mutant)
    assert judge(T4_LOWER.of(None, "one buffer")).verdict is Verdict.UNKNOWN


def test_a_contradictory_invariant_is_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t4_fewest_waits, "invariant", lambda k, *_: (k < 1,))
    assert judge(T4_LOWER.of(None, "one buffer")).verdict is not Verdict.PROVED
    monkeypatch.setattr(t4_fewest_waits, "invariant", lambda k, taken, fresh, pending, kw: (z3.BoolVal(False, k.ctx), taken >= 0))
    assert judge(T4_LOWER.of(None, "one buffer")).verdict is not Verdict.PROVED
