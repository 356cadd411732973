"""I1: the rings are proved by induction, the wrong ones are not, and the proof's moves are those of the real machine."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering import axioms, races
from kvstage_model.schedules.drivers import delays
from kvstage_model.simulation.simulator import simulate
from kvstage_model.symbolic import window
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.query import Answer, Asked
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems import i1_ring
from kvstage_proofs.theorems.i1_ring import I1, invariant, queries, safe, search
from kvstage_proofs.theorems.i1_ring_text import instance_of, ring_of
from tests.support.rings import BROKEN, OVER_WAITING, RIGHT
from tests.support.tiers import often
from tests.support.watching import watched

MANY = settings(max_examples=60, deadline=None)


def asked(function: SchemeFunction) -> tuple[Asked, ...]:
    return tuple(ask(query) for query in queries(function))


@pytest.mark.parametrize("direction", RIGHT)
def test_the_rings_are_proved(direction: str) -> None:
    judgement = judge(I1.of(RIGHT[direction], "ring", direction))
    assert judgement.verdict is Verdict.PROVED, judgement.reason
    assert judgement.statement.name == f"ring.{direction}:I1"


@pytest.mark.parametrize("direction", RIGHT)
def test_every_move_can_happen_and_every_demand_is_made(direction: str) -> None:
    answers = asked(RIGHT[direction])
    assert len(answers) > 10
    assert all(answer.must_hold and answer.can_hold is Answer.SAT for answer in answers)


@pytest.mark.parametrize("direction", RIGHT)
def test_neither_axioms_nor_windows_are_used(direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is the second opinion on could be wrong in every part."""

    def unused(*_: object) -> None:
        raise AssertionError("the axioms were read")

    for module, name in ((window, "edges"), (races, "edges"), (axioms, "edges"), (window.Window, "add")):
        monkeypatch.setattr(module, name, unused)
    assert judge(I1.of(RIGHT[direction], "ring", direction)).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", often({**BROKEN, **OVER_WAITING}, 5))
def test_a_wrong_ring_is_not_proved(name: str) -> None:
    """An induction step that fails is no counterexample; that there is none follows from nothing here."""
    answers = asked({**BROKEN, **OVER_WAITING}[name])
    assert any(answer.open for answer in answers)
    assert verdict_of(answers)[0] is Verdict.UNKNOWN


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_ring_is_refuted_by_an_instance(name: str) -> None:
    judgement = judge(I1.of(BROKEN[name], name, expected=Verdict.REFUTED))
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.counterexample is not None
    assert judgement.counterexample.wrong


@pytest.mark.parametrize("name", OVER_WAITING)
def test_what_is_not_proved_for_lack_of_a_second_slot_is_harmless(name: str) -> None:
    runs = 0
    for slots in (1, 2, 3):
        scheme = instance_of(OVER_WAITING[name], slots, 7)
        for _, simulation in delays(lambda schedule, scheme=scheme: simulate([scheme, scheme], schedule)):
            assert not simulation.wrong
            runs += 1
    assert runs > 80
    assert search(OVER_WAITING[name], 50) is None


def test_a_demand_that_does_not_hold_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """One item further: the answers do come from what is asked."""

    def demanded(ring, state):  # type: ignore[no-untyped-def]
        for name, here, so in safe(ring, state):
            yield name, here, so & (state.first == state.due)

    monkeypatch.setattr(i1_ring, "safe", demanded)
    assert any(answer.open for answer in asked(RIGHT["read"]))


def hold(direction: str, seed: int) -> tuple[int, int]:
    """Each state of a random run of the real machine has the invariant, and is safe. How many states, how many demands."""
    function = RIGHT[direction]
    ring, states, demands = ring_of(function), 0, 0
    for happened in watched(function, ring, seed, calls=2).happened:
        for state in (*happened.before[:1], *happened.after):
            broken = [number for number, holds in enumerate(invariant(ring, state)) if not holds]
            assert not broken, f"clauses {broken} in {state}"
            for name, here, so in safe(ring, state):
                assert so or not here, f"{name} in {state}"
                demands += here
            states += 1
    return states, demands


@pytest.mark.parametrize("direction", RIGHT)
def test_what_the_machine_reaches_has_the_invariant(direction: str) -> None:
    met: list[tuple[int, int]] = []

    @MANY
    @given(st.integers(0, 10**6))
    def runs(seed: int) -> None:
        met.append(hold(direction, seed))

    runs()
    assert sum(states for states, _ in met) > 1000
    assert sum(demands for _, demands in met) > 100


@pytest.mark.extended
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("part", range(4))
def test_what_the_machine_reaches_in_many_runs_has_the_invariant(direction: str, part: int) -> None:
    met = [hold(direction, seed) for seed in range(2000 * part, 2000 * part + 1000)]
    assert sum(demands for _, demands in met) > 5000


def test_a_run_of_a_ring_without_its_wait_leaves_the_invariant() -> None:
    name = "read without the wait"
    ring, function = ring_of(RIGHT["read"]), BROKEN[name]
    runs = [watched(function, ring, seed) for seed in range(30)]
    states = [state for watch in runs for happened in watch.happened for state in happened.after]
    assert not all(all(invariant(ring, state)) for state in states)
    demands = [(name, so) for state in states for name, here, so in safe(ring, state) if here]
    assert not all(so for _, so in demands)
