"""Traps: each of these gave a false verdict in a prototype of the prover. With each, a twin that takes the guard away.

Here are (4) to (8) and (10), about numbers and rows. `test_traps_of_waits` has (1), (2), (3) and (9), about which operation
waits for which.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Annotated, Any

import pytest
import z3

from kvstage_model.language.bounds import bounds
from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.language.contract import Clause
from kvstage_model.language.operations import Copy, HostWrite, Operation, SyncStream
from kvstage_model.language.parameters import Declared, Parameter, SchemeFunction
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.symbolic.index import Condition
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.world import World
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.obligation import Theorem, Verdict
from kvstage_proofs.solvers.query import Answer, Asked, Query
from kvstage_proofs.solvers.z3_solver import Asking, ask, solve
from kvstage_proofs.theorems import t7_bounds
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.loops import WAIT, Place, loop, stored

PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
STAGE = Buffer("stage", Memory.PINNED, 4, 4)


def claimed(theorem: Theorem[SchemeFunction], function: SchemeFunction) -> Verdict:
    """What the solver alone makes of it, with no small instance to disagree."""
    return verdict_of(tuple(ask(query) for query in theorem.queries(function)))[0]


# -- (4) `if i == 0` on raw solver terms


def no_wait_at_first(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    yield place.store(i)
    if i == 0:
        return
    yield WAIT


def test_what_step_0_does_otherwise_is_judged() -> None:
    """`bool(term == 0)` of a raw term is False without a word: the prototype never saw what step 0 does."""
    judgement = judge(T1.of(loop(no_wait_at_first), "loop"))
    assert judgement.verdict is REFUTED
    assert judgement.counterexample is not None
    assert "step 0: Copy" in judgement.counterexample.wrong


def test_with_raw_truth_step_0_goes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Condition, "__bool__", lambda condition: bool(condition.term))  # z3's own: `a == b` is one term
    assert claimed(T1, loop(no_wait_at_first)) is PROVED


def test_a_raw_term_that_leaks_into_a_scheme_is_unsupported() -> None:
    def leaks(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("leaks", (STAGE,), n, lambda i: [HostWrite(STAGE.at(z3.Int("slot"), 0, 1))])

    judgement = judge(T1.of(leaks, "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert "z3.py" in judgement.reason


def test_a_truth_compared_with_true_is_judged() -> None:
    """By identity `(i % 2 == 0) == True` is False without a word, and the wait looked as if it always came."""

    def odd_steps_wait(place: Place, i: int) -> Iterator[Operation]:
        yield place.scribble(i)
        yield place.store(i)
        if (i % 2 == 0) == True:  # noqa: E712 people write it
            return
        yield WAIT

    assert judge(T1.of(loop(odd_steps_wait), "loop")).verdict is REFUTED


@pytest.mark.parametrize("name", ["i", "j", "p", "x", "call"])
def test_a_parameter_named_like_a_step_is_judged_at_every_step(name: str) -> None:
    """A parameter `j` was the same symbol as step j of the proof, which then looked at no other pair of steps."""

    def scheme(**values: int) -> Scheme:
        (number,) = values.values()

        def step(i: int) -> Iterator[Operation]:
            yield HostWrite(STAGE.at(0, 0, 1))
            yield Copy("copy", STAGE.at(0, 0, 1), STAGE.at(1, 0, 1))
            if i != number:
                yield WAIT

        return Scheme("named", (STAGE,), 9, step, (WAIT,))

    assert judge(T1.of(Declared(scheme, (Parameter(name, int),)), "loop")).verdict is REFUTED


# -- (5), (6), (7): what T1 can't see, T7 demands


def beyond_the_slot(place: Place, i: int) -> Iterator[Operation]:
    """One row beyond the first slot is the second slot's first row: somebody else's."""
    yield HostWrite(place.stage.at(0, 1, place.runs.part(i).count))


def onto_itself(place: Place, i: int) -> Iterator[Operation]:
    yield Copy("copy", place.staged(i), place.staged(i))
    yield WAIT


def of_negative_count(place: Place, i: int) -> Iterator[Operation]:
    """Rows [0, -1) have no row in common with any, so no such copy ever races."""
    yield Copy("copy", place.scratch.at(0, 0, -1), place.stage.at(0, 0, -1))
    yield place.scribble(i)


BLIND: dict[str, tuple[Any, str]] = {
    "rows beyond a slot's end": (beyond_the_slot, "lie inside its slot"),
    "an operation that overlaps itself": (onto_itself, "source and target are disjoint"),
    "a negative count": (of_negative_count, "is not negative"),
}


@pytest.mark.parametrize(("body", "demand"), BLIND.values(), ids=BLIND.keys())
def test_what_t1_proves_of_rows_that_are_none_t7_refutes(body: Any, demand: str) -> None:
    """T1 compares slots and rows by number, and pairs of operations: it has nothing to say about these, and says PROVED."""
    assert judge(T1.of(loop(body), "loop")).verdict is PROVED
    judgement = judge(T7.of(loop(body), "loop"))
    assert judgement.verdict is REFUTED
    assert demand in judgement.counterexample.wrong  # type: ignore[union-attr]


@pytest.mark.parametrize(("body", "demand"), BLIND.values(), ids=BLIND.keys())
def test_without_the_demand_nothing_refutes_them(body: Any, demand: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fewer(operation: Operation, row: int, other: int) -> Iterator[Clause]:
        yield from (clause for clause in bounds(operation, row, other) if demand not in clause.name)

    monkeypatch.setattr(t7_bounds, "bounds", fewer)
    assert claimed(T7, loop(body)) is PROVED


# -- (8) contradictory assumptions


def only_before_step_0(place: Place, i: int) -> Iterator[Operation]:
    if i < 0:
        yield place.scribble(i)
        yield place.store(i)


def only_below_the_range(n: Annotated[int, AtLeast(2)]) -> Scheme:
    def step(i: int) -> Iterator[Operation]:
        if n < 2:
            yield Copy("copy", STAGE.at(0, 0, 1), STAGE.at(1, 0, 1))

    return Scheme("never", (STAGE,), n, step)


NEVER: dict[str, Callable[[], SchemeFunction]] = {
    "steps below 0": lambda: loop(only_before_step_0),
    "a parameter below its range": lambda: only_below_the_range,
    "no steps": lambda: loop(stored, steps=lambda runs: 0),
    "a negative number of steps": lambda: loop(stored, steps=lambda runs: -runs.number),
}


@pytest.mark.parametrize("function", NEVER.values(), ids=NEVER.keys())
@pytest.mark.parametrize("theorem", [T1, T7])
def test_a_claim_about_nothing_is_vacuous(function: Callable[[], SchemeFunction], theorem: Theorem[SchemeFunction]) -> None:
    """From assumptions that can't hold everything follows: a loop that never copies was proved free of hazards."""
    assert judge(theorem.of(function(), "loop")).verdict is VACUOUS


def trusting(_: Asking, query: Query) -> Asked:
    """Asks for the doubt alone."""
    answer, steps = solve([*query.facts, query.premise, query.negated_goal])
    return Asked(query.name, answer, Answer.SAT, query.must_hold, 0.0, steps)


@pytest.mark.parametrize("theorem", [T1, T7])
def test_without_a_look_at_the_premise_it_is_proved(theorem: Theorem[SchemeFunction], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asking, "ask", trusting)
    assert judge(theorem.of(loop(only_before_step_0), "loop")).verdict is PROVED


def test_axioms_that_contradict_each_other_are_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    """An axiom the wrong way round rules every pair of operations out: no race, and no proof."""
    real = Window.facts

    def contradictory(window: Window) -> list[Any]:
        pairs = permutations(window.instances, 2)
        return [*real(window), *(z3.Implies(z3.And(a.exists, b.exists), a.end < b.begin) for a, b in pairs)]

    monkeypatch.setattr(Window, "facts", contradictory)
    assert judge(T1.of(loop(stored), "loop")).verdict is VACUOUS
    monkeypatch.setattr(Asking, "ask", trusting)
    assert judge(T1.of(loop(stored), "loop")).verdict is PROVED


# -- (10) `==` or `in` on operations with symbolic fields


@dataclass(frozen=True)
class ByValue:
    """Rows as they must not be: compared by value."""

    slot: int
    start: int


def test_operations_and_rows_never_compare_by_value() -> None:
    """Compared by value, `operation in seen` would fork the proof, once for each field, where nobody asked for a branch."""
    world = World()
    i, j = world.integer("i"), world.integer("j")
    mine, other = (HostWrite(STAGE.at(index, 0, 1)) for index in (i, j))
    for one, another in ((mine, other), (mine.target, other.target), (STAGE, replace(STAGE)), (WAIT, SyncStream("copy"))):
        paths = world.paths(lambda one=one, another=another: (one == another, one in [another]))
        assert [path.decisions for path in paths] == [()]
        assert one != another
        assert one == one


def test_compared_by_value_they_fork_the_proof() -> None:
    world = World()
    paths = world.paths(lambda: ByValue(world.integer("i"), 0) == ByValue(world.integer("j"), 0))
    assert [path.decisions for path in paths] == [(True,), (False,)]
    assert Rows.__eq__ is object.__eq__
