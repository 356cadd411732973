"""What is enough for an answer must be part of the question, and must be enough."""

from itertools import islice

import pytest
import z3

from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.symbolic.z3_terms import Term
from kvstage_proofs.judging import crosscheck
from kvstage_proofs.judging.crosscheck import second_opinion
from kvstage_proofs.solvers.evidence import core, witness
from kvstage_proofs.solvers.query import Answer, Asked, Query
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.t3_result import T3

UNSAT, SAT, UNKNOWN = Answer


def facts(*wanted: str) -> list[Term]:
    """Facts over x, y and a function f, each in Python's syntax."""
    context = z3.Context()
    x, y = (z3.Int(name, context) for name in "xy")
    f = z3.Function("f", x.sort(), x.sort())
    return [eval(text, {"x": x, "y": y, "f": f, "Or": z3.Or}) for text in wanted]


def test_a_core_is_some_of_the_facts_and_contradicts_itself() -> None:
    given = facts("y > 3", "x > 5", "f(y) == 2", "x < 5", "x != y")
    found = core(given)
    assert found is not None
    assert sorted(map(str, found)) == ["x < 5", "x > 5"]
    assert all(any(each is fact for fact in given) for each in found)


def test_what_can_hold_has_no_core_and_what_can_not_has_no_witness() -> None:
    assert core(facts("x > 5", "y < x")) is None
    assert witness(facts("x > 5", "x < 5")) is None


def test_a_witness_leaves_nothing_open() -> None:
    given = facts("Or(x > 5, f(y) > f(x) + 1)", "f(f(y)) == x", "y > 2")
    text = witness(given)
    assert text is not None
    assert "declare-fun" not in text
    solver = z3.Solver()
    solver.from_string(text)
    assert len(solver.assertions()) == len(given)
    assert all(z3.is_true(z3.simplify(each)) for each in solver.assertions()), "it is a matter of counting now"


def test_a_wrong_witness_is_no_answer() -> None:
    text = witness(facts("x > 5", "y > x"))
    assert text is not None
    assert crosscheck.solve_smtlib("(set-logic QF_UFLIA)" + text)[0] is SAT
    assert crosscheck.solve_smtlib("(set-logic QF_UFLIA)" + text.replace("(> x 5)", "(< x 5)"))[0] is UNSAT


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return list(islice(T3.of(LIBRARY["per_block"].read, "per_block", "read").queries(), 3))


def test_cvc5_need_not_see_the_whole(queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it says that what is enough is so, the whole, which is far larger, is never put to it."""
    seen: list[str] = []
    real = crosscheck.solve_smtlib
    monkeypatch.setattr(crosscheck, "solve_smtlib", lambda text: seen.append(text) or real(text))
    for query in queries:
        first = ask(query)
        second = second_opinion(query, first)
        assert (second.can_hold, second.answer) == (first.can_hold, first.answer) == (SAT, UNSAT)
        valued, refuted = seen
        assert valued.count("define-fun") > 20
        assert refuted.count("(assert") < query.smt2().count("(assert") / 10
        seen.clear()


@pytest.mark.parametrize("wrong", [UNSAT, SAT, UNKNOWN])
def test_twin_where_it_does_not_say_so_it_is_asked_the_whole(
    queries: list[Query], monkeypatch: pytest.MonkeyPatch, wrong: Answer
) -> None:
    whole = {queries[0].premise_smt2(): SAT, queries[0].smt2(): UNSAT}
    monkeypatch.setattr(crosscheck, "solve_smtlib", lambda text: (whole.get(text, wrong), 1))
    second = second_opinion(queries[0], ask(queries[0]))
    assert (second.can_hold, second.answer) == (SAT, UNSAT)


def test_a_core_that_is_none_convinces_nobody(queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    """What z3 calls a contradiction can hold: cvc5 says so, of that part and then of the whole."""
    possible = Query("possible", [], *facts("x > 5", "y > x", "x == x"))
    first = ask(possible)
    assert first.answer is SAT
    monkeypatch.setattr(crosscheck, "core", lambda assertions: assertions[:1])
    second = second_opinion(possible, Asked(first.name, UNSAT, SAT, False, 0.0, 0))
    assert second.answer is SAT
