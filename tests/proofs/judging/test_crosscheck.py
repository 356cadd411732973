"""The second solver: cvc5 must say what z3 says, and a verdict that it does not share is no proof."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import z3

from kvstage_model.language.partitions import by_block, by_row
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.symbolic import division
from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.commands.main import main
from kvstage_proofs.judging import crosscheck
from kvstage_proofs.judging.crosscheck import crosschecked, differences, second_opinion
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.solvers import cvc5_solver
from kvstage_proofs.solvers.cvc5_solver import CrosscheckError, solve_smtlib
from kvstage_proofs.solvers.query import Answer, Asked, Query
from kvstage_proofs.solvers.z3_solver import Asking, ask
from kvstage_proofs.targets import names
from kvstage_proofs.theorems.l1_gap_lemma import L1
from kvstage_proofs.theorems.p1_partitions import P1
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from tests.support.claims import PROVED, REFUTED, claim
from tests.support.tiers import often

UNSAT, SAT, UNKNOWN = Answer
SetCatalogue = Callable[..., None]


@pytest.fixture
def catalogue_of(monkeypatch: pytest.MonkeyPatch) -> SetCatalogue:
    """Sets the catalogue, and judges in this process."""

    def replace(*stated: Obligation) -> None:
        monkeypatch.setattr(names, "catalogue", lambda: iter(stated))
        monkeypatch.setattr("kvstage_proofs.commands.parallel.processes", lambda _: 1)

    return replace


def query(premise: str, doubt: str, logic: str = "QF_UFLIA") -> Query:
    """A query over x, y and z, each part in Python's syntax."""
    context = z3.Context()
    names = {name: z3.Int(name, context) for name in "xyz"}
    given, doubted = (eval(text, {}, names | {"And": z3.And}) for text in (premise, doubt))
    return Query("a query", [], given, doubted, z3.BoolVal(True, context), logic=logic)


PLAIN = [
    ("x < y", "y < x", SAT, UNSAT),
    ("x < y", "y < x + 2", SAT, SAT),
    ("And(x < y, y < x)", "x == x", UNSAT, UNKNOWN),
]


@pytest.mark.parametrize(("premise", "doubt", "can_hold", "answer"), PLAIN)
def test_what_is_plain_to_see_cvc5_says_too(premise: str, doubt: str, can_hold: Answer, answer: Answer) -> None:
    asked = query(premise, doubt)
    first, second = ask(asked), second_opinion(asked, ask(asked))
    assert (second.can_hold, second.answer) == (can_hold, answer) == (first.can_hold, first.answer)
    assert list(differences(first, second)) == []


def test_a_premise_that_only_the_hint_rules_out_can_hold() -> None:
    hinted = query("x > 5", "x < y")
    hinted = Query(hinted.name, [], hinted.premise, hinted.negated_goal, z3.Int("x", hinted.negated_goal.ctx) == 1)
    assert second_opinion(hinted, ask(hinted)).can_hold is SAT


HARD = query("And(x > 1, y > 1, z > 1)", "x * x * x + y * y * y == z * z * z", "QF_NIA")
"""Fermat's theorem for cubes: unsat, and out of reach of a small budget."""


def test_a_budget_that_is_used_up_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvc5_solver, "RESOURCES", 20_000)
    assert solve_smtlib(HARD.smt2())[0] is UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "(set-logic QF_UFLIA)(declare-fun x () Int)(assert (> (* x x) 1))(check-sat)",
        "(set-logic QF_UFLIA)(assert (> undeclared 1))(check-sat)",
        "no SMT-LIB",
    ],
)
def test_a_text_that_cvc5_can_not_read_is_an_error_and_no_answer(text: str) -> None:
    with pytest.raises(CrosscheckError, match="does not understand"):
        solve_smtlib(text)


@pytest.mark.parametrize("mine", Answer)
@pytest.mark.parametrize("other", Answer)
def test_sat_and_unsat_differ_and_nothing_else(mine: Answer, other: Answer) -> None:
    first, second = (Asked("a query", answer, SAT, False, 0.0, 0) for answer in (mine, other))
    words = list(differences(first, second))
    assert len(words) == ({mine, other} == {SAT, UNSAT})
    for line in words:
        assert f"z3 says {mine.value}, cvc5 says {other.value}" in line
    first, second = (Asked("a query", UNKNOWN, can_hold, False, 0.0, 0) for can_hold in (mine, other))
    assert len(list(differences(first, second))) == len(words)


def test_a_wrong_answer_of_z3_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that refutes what is possible: alone it proves; cvc5 does not agree."""
    possible = Obligation(claim(PROVED).statement, lambda: iter([query("x < y", "y < x + 2")]), lambda _: None)

    def wrong(_: Asking, asked: Query) -> Asked:
        return Asked(asked.name, UNSAT, SAT, asked.must_hold, 0.0, 0)

    monkeypatch.setattr(Asking, "ask", wrong)
    assert judge(possible).verdict is PROVED
    judgement = judge(possible, crosschecked)
    assert judgement.verdict is Verdict.DISAGREE
    assert not judgement.ok
    assert "z3 says unsat, cvc5 says sat" in judgement.reason


def saying(answer: Answer) -> Callable[[str], tuple[Answer, int]]:
    return lambda text: (answer, 0)


@pytest.mark.parametrize(
    ("said", "code", "word"),
    [(SAT, 1, "DISAGREE"), (UNKNOWN, 3, "UNKNOWN")],
)
def test_what_cvc5_does_not_share_ends_the_run(
    catalogue_of: SetCatalogue,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: Answer,
    code: int,
    word: str,
) -> None:
    catalogue_of(claim(PROVED), claim(REFUTED, REFUTED))
    assert main(["prove", "--crosscheck"]) == 0
    assert "cvc5 1." in capsys.readouterr().out
    monkeypatch.setattr(crosscheck, "solve_smtlib", saying(said))
    assert main(["prove"]) == 0
    assert main(["prove", "--crosscheck"]) == code
    assert word in capsys.readouterr().out


def test_a_wrong_verdict_stays_wrong_where_cvc5_can_not_say(catalogue_of: SetCatalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue_of(claim(PROVED, REFUTED))
    monkeypatch.setattr(crosscheck, "solve_smtlib", saying(UNKNOWN))
    assert main(["prove", "--crosscheck"]) == 1


def test_without_cvc5_nothing_is_proved(
    catalogue_of: SetCatalogue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue_of(claim(PROVED))
    monkeypatch.setattr(cvc5_solver, "find_spec", lambda name: None)
    assert main(["prove", "--crosscheck"]) == 2
    shown = capsys.readouterr()
    assert "kvstage[crosscheck]" in shown.err
    assert shown.out == ""


def test_the_report_names_both_solvers(catalogue_of: SetCatalogue, tmp_path: Path) -> None:
    catalogue_of(L1.of(division.lemmas, "lemmas"))
    assert main(["prove", "--crosscheck", "--json", str(tmp_path / "report.json")]) == 0
    (entry,) = json.loads((tmp_path / "report.json").read_text())["obligations"]
    assert entry["solvers"]["cvc5"].keys() == {"answer", "seconds", "version"}
    assert (entry["solvers"]["z3"]["answer"], entry["solvers"]["cvc5"]["answer"]) == ("unsat", "unsat")


CHEAP = [
    L1.of(division.lemmas, "lemmas"),
    P1.of(by_row, "by_row"),
    P1.of(by_block, "by_block"),
    T1.of(LIBRARY["per_row"].read, "per_row", "read"),
    T3.of(LIBRARY["per_row"].write, "per_row", "write"),
]


@pytest.mark.parametrize("obligation", often(CHEAP, 2), ids=lambda obligation: obligation.statement.name)
def test_cvc5_agrees_on_every_query(obligation: Obligation) -> None:
    judgement = judge(obligation, crosschecked)
    assert judgement.verdict is PROVED, judgement.reason
    assert len(judgement.second) == len(judgement.asked) > 0
    for first, second in zip(judgement.asked, judgement.second, strict=True):
        assert (first.name, first.answer, first.can_hold) == (second.name, second.answer, second.can_hold)


TO_PROVE = [obligation for obligation in catalogue() if obligation.statement.expected is PROVED]


@pytest.mark.extended
@pytest.mark.parametrize("obligation", TO_PROVE, ids=lambda obligation: obligation.statement.name)
def test_cvc5_agrees_on_the_catalogue(obligation: Obligation) -> None:
    judgement = judge(obligation, crosschecked)
    assert judgement.ok, judgement.reason
