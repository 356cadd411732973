"""Queries: the premise first, then the doubt; anything but unsat or sat is UNKNOWN."""

from typing import Any

import pytest
import z3

from kvstage_proofs.solvers import z3_solver
from kvstage_proofs.solvers.query import Answer, Asked, Query
from kvstage_proofs.solvers.z3_solver import ask, solve

UNSAT, SAT, UNKNOWN = Answer


def query(facts: list[str], premise: str, doubt: str) -> Query:
    """A query over x, y and z, each part in Python's syntax."""
    context = z3.Context()
    names: dict[str, Any] = {name: z3.Int(name, context) for name in "xyz"}
    names |= {"Or": z3.Or, "And": z3.And}
    *parsed, given, doubted = (eval(text, {}, names) for text in (*facts, premise, doubt))
    return Query("a query", parsed, given, doubted, hint=z3.BoolVal(True, context))


@pytest.mark.parametrize(
    ("facts", "premise", "doubt", "can_hold", "answer"),
    [
        (["x < y"], "y < z", "z <= x", SAT, UNSAT),
        (["x < y"], "y < z", "z <= y + 1", SAT, SAT),
        (["x < y"], "y < x", "z < x", UNSAT, UNKNOWN),
        (["x < y", "y < x"], "x == x", "x < x", UNSAT, UNKNOWN),
    ],
)
def test_an_answer_counts_only_under_a_premise_that_can_hold(
    facts: list[str], premise: str, doubt: str, can_hold: Answer, answer: Answer
) -> None:
    asked = ask(query(facts, premise, doubt))
    assert (asked.can_hold, asked.answer) == (can_hold, answer)
    assert asked.proves == (can_hold is SAT and answer is UNSAT)
    assert asked.rlimit >= 0


HARD = (["x > 1", "y > 1", "z > 1"], "x == x", "x * x * x + y * y * y == z * z * z")
"""Fermat's theorem for cubes: unsat, and out of reach of a small budget."""


def test_a_budget_that_is_used_up_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3_solver, "RLIMIT", 5_000)
    asked = ask(query(*HARD))
    assert UNKNOWN in (asked.answer, asked.can_hold)
    assert not asked.proves


def test_an_exception_of_the_solver_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def canceled(self: z3.Solver, *assumptions: Any) -> Any:
        raise z3.Z3Exception("canceled")

    monkeypatch.setattr(z3.Solver, "check", canceled)
    x = z3.Int("x")
    assert solve([x < x]) == (UNKNOWN, z3_solver.RLIMIT)
    assert not ask(query(["x < y"], "y < z", "z <= x")).proves


@pytest.mark.parametrize("found", [z3.unknown, None, "unsat", 1])
def test_any_other_answer_is_unknown(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    monkeypatch.setattr(z3.Solver, "check", lambda self, *assumptions: found)
    x = z3.Int("x")
    assert solve([x < x])[0] is UNKNOWN


@pytest.mark.parametrize(("answer", "can_hold"), [(a, c) for a in Answer for c in Answer])
def test_one_combination_of_answers_alone_proves(answer: Answer, can_hold: Answer) -> None:
    asked = Asked("a query", answer, can_hold, False, 0.0, 0)
    assert asked.proves == (answer is UNSAT and can_hold is SAT)


def test_the_steps_of_a_question_are_its_own() -> None:
    """The solver counts through all questions of a context: a second, equal question must not count the first one's too."""
    first = query(["x < y"], "y < z", "z <= x")
    used = [solve([*first.facts, first.premise, first.negated_goal])[1] for _ in range(5)]
    assert max(used) < 3 * max(min(used), 1)


@pytest.mark.parametrize(("doubt", "answer"), [("z <= x", z3.unsat), ("z <= y + 1", z3.sat)])
def test_the_text_of_a_query_asks_the_same(doubt: str, answer: Any) -> None:
    solver = z3.Solver()
    solver.from_string(query(["x < y"], "y < z", doubt).smt2())
    assert solver.check() == answer
