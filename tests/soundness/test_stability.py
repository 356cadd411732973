"""Copies of a query, shuffled, renamed and reseeded, are answered alike."""

import random
import re

import pytest
import z3

from kvstage_model.language.partitions import by_row
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.symbolic import division
from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.maintenance.stability import answers, copies, renamed
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.solvers import z3_solver
from kvstage_proofs.solvers.query import Answer, Query
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.l1_gap_lemma import L1
from kvstage_proofs.theorems.p1_partitions import P1
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.tiers import often

UNSAT, SAT, UNKNOWN = Answer
FEW, MANY = 5, 30
FAR_TOO_FEW = 1_000
"""Steps in which no copy of the gap lemma is answered, by far: they need some ten thousand, now more, now fewer."""


def query(facts: list[str], doubt: str) -> Query:
    """A query over x, y and z, each part in Python's syntax."""
    context = z3.Context()
    names = {name: z3.Int(name, context) for name in "xyz"}
    *given, doubted = (eval(text, {}, names) for text in (*facts, doubt))
    true = z3.BoolVal(True, context)
    return Query("a query", given, true, doubted, true)


@pytest.mark.parametrize(("doubt", "answer"), [("z <= x", UNSAT), ("z <= x + 2", SAT)])
def test_every_copy_asks_the_same(doubt: str, answer: Answer) -> None:
    assert answers(query(["x < y", "y < z"], doubt), MANY) == [answer] * MANY


def test_copies_differ_in_order_and_in_names() -> None:
    texts = list(copies(query(["x < y", "y < z", "x > 0"], "z <= x"), MANY))
    assert len(set(texts)) > MANY // 2
    assert texts == list(copies(query(["x < y", "y < z", "x > 0"], "z <= x"), MANY))
    for text in texts:
        assert re.findall(r"\b[xyz]\b", text) == []
        assert set(re.findall(r"\(declare-fun (\S+)", text)) == {"s0", "s1", "s2"}


def test_copies_say_all_that_the_query_says() -> None:
    """Up to order and names, and so with the same letters in the same number."""
    asked = query(["x < y", "y < z", "x > 0", "x*y + z > 3"], "z <= x")
    whole = z3.Solver(ctx=asked.negated_goal.ctx)
    whole.add(*asked.facts, asked.premise, asked.negated_goal)
    wanted = sorted(without_names(str(each)) for each in whole.assertions())
    for text in copies(asked, MANY):
        read = z3.Solver(ctx=z3.Context())
        read.from_string(text)
        assert sorted(without_names(str(each)) for each in read.assertions()) == wanted


def without_names(text: str) -> str:
    return re.sub(r"\b([xyz]|s\d+)\b", "?", text)


def test_renaming_tells_symbols_apart_and_leaves_all_else() -> None:
    text = "(declare-fun |a b| (Int) Int)(declare-fun a () Int)(declare-fun a!1 () Int)(assert (let ((b a)) (> (|a b| b) a!1 1)))"
    new = renamed(text, random.Random(3))
    names = re.findall(r"\(declare-fun (\S+)", new)
    assert sorted(names) == ["s0", "s1", "s2"]
    function, a, a_1 = names
    expected = f"(declare-fun {function} (Int) Int)(declare-fun {a} () Int)(declare-fun {a_1} () Int)"
    assert new == f"{expected}(assert (let ((b {a})) (> ({function} b) {a_1} 1)))"


def test_a_copy_that_is_not_answered_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    (hard,) = [each for each in L1.queries(division.lemmas) if "gap lemma" in each.name]
    assert answers(hard, FEW) == [UNSAT] * FEW
    monkeypatch.setattr(z3_solver, "RLIMIT", FAR_TOO_FEW)
    assert answers(hard, FEW) == [UNKNOWN] * FEW


def _hold(obligation: Obligation, number: int) -> None:
    asked = 0
    for each in obligation.queries():
        first, question = ask(each), each
        while first.open and question.strengthened is not None:
            question = question.strengthened()
            first = ask(question)
        if first.can_hold is SAT:
            assert answers(question, number) == [first.answer] * number, question.name
            asked += 1
    assert asked > 0


SAMPLE = [
    L1.of(division.lemmas, "lemmas"),
    P1.of(by_row, "by_row"),
    T7.of(LIBRARY["per_row"].read, "per_row", "read"),
    T1.of(LIBRARY["per_row"].write, "per_row", "write"),
    T3.of(LIBRARY["per_row"].read, "per_row", "read"),
]


@pytest.mark.parametrize("obligation", often(SAMPLE, 2), ids=lambda obligation: obligation.statement.name)
def test_a_sample_is_stable(obligation: Obligation) -> None:
    _hold(obligation, FEW)


TO_PROVE = [obligation for obligation in catalogue() if obligation.statement.expected is Verdict.PROVED]


@pytest.mark.extended
@pytest.mark.parametrize("obligation", TO_PROVE, ids=lambda obligation: obligation.statement.name)
def test_each_obligation_is_stable(obligation: Obligation) -> None:
    _hold(obligation, MANY)
