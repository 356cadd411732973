"""The report: lines, summary and JSON."""

import json
from dataclasses import replace

import pytest
import z3

from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Judgement, Obligation, Verdict
from kvstage_proofs.reports.console import Text, summary
from kvstage_proofs.reports.json_report import as_json, overall
from kvstage_proofs.solvers.query import Answer, Asked
from tests.support.claims import BROKEN, PROVED, REFUTED, UNKNOWN, UNSUPPORTED, VACUOUS, claim, judgement

SAT, UNSAT, OPEN = Answer.SAT, Answer.UNSAT, Answer.UNKNOWN


def asked(answer: Answer, can_hold: Answer = SAT) -> Asked:
    return Asked("a doubt", answer, can_hold, False, 0.5, 100)


def line(one: Judgement, coloured: bool = False) -> str:
    return Text([one.statement], coloured).line(one)


def test_a_line_says_what_was_found_of_what() -> None:
    proved = replace(judgement(PROVED), asked=(asked(UNSAT), asked(UNSAT)))
    assert line(proved) == "PROVED       loop.read:T0  a plain claim    2 queries    0.2 s"
    refuted = replace(judgement(REFUTED, REFUTED), asked=(asked(SAT),), counterexample=BROKEN)
    assert line(refuted) == "REFUTED      loop.read:T0  a plain claim      1 query    0.2 s  in 3 steps"
    assert line(replace(refuted, counterexample=replace(BROKEN, steps=1))).endswith("  in 1 step")


@pytest.mark.parametrize(("verdict", "expected"), [(REFUTED, PROVED), (PROVED, REFUTED), (UNKNOWN, PROVED), (VACUOUS, PROVED)])
def test_a_line_says_what_was_expected_instead(verdict: Verdict, expected: Verdict) -> None:
    assert line(judgement(verdict, expected)).endswith(f"  <- expected {expected.value}")
    assert "expected" not in line(judgement(verdict, verdict))


def test_columns_are_as_wide_as_the_longest_name() -> None:
    short, long = judgement(PROVED), judgement(UNSUPPORTED)
    long = replace(long, statement=replace(long.statement, scheme="a much longer loop", title="a longer title of it"))
    text = Text([short.statement, long.statement])
    assert text.line(short).index("0 queries") == text.line(long).index("0 queries")


@pytest.mark.parametrize(
    ("verdict", "expected", "colour"),
    [(PROVED, PROVED, "32"), (REFUTED, REFUTED, "32"), (REFUTED, PROVED, "1;31"), (UNKNOWN, PROVED, "33")],
)
def test_colours(verdict: Verdict, expected: Verdict, colour: str) -> None:
    one = judgement(verdict, expected)
    assert line(one, coloured=True).startswith(f"\x1b[{colour}m{verdict.value}")
    assert "\x1b" not in line(one)


def test_reasons_are_always_shown_and_schedules_where_wanted() -> None:
    text = Text([])
    unsupported = judge(claim(UNSUPPORTED))
    assert list(text.details(unsupported, schedule=False)) == ["    an index can't do that: do this instead"]
    refuted = judge(claim(REFUTED))
    assert list(text.details(refuted, schedule=False)) == []
    assert list(text.details(refuted, schedule=True)) == ["    instance: n = 1, 1 call", "    wrong: it is not so"]


@pytest.mark.parametrize("one", [claim(VACUOUS), claim(UNKNOWN)])
def test_what_is_vacuous_or_unknown_has_a_reason(one: Obligation) -> None:
    (reason,) = Text([]).details(judge(one), schedule=False)
    assert "there is nothing to ask" in reason or "up to 3 rows" in reason


def test_the_summary_counts_verdicts() -> None:
    right = [judgement(PROVED), judgement(PROVED), judgement(REFUTED, REFUTED)]
    assert summary(right, 0.4) == "3 obligations: 2 PROVED, 1 REFUTED as expected; 1 s of work in 0 s"
    wrong = [judgement(REFUTED), judgement(UNKNOWN), judgement(REFUTED)]
    assert "3 obligations: NOT as expected: 2 REFUTED, 1 UNKNOWN; " in summary(wrong, 0.4)
    assert "4 obligations: 1 PROVED as expected; NOT as expected: 2 REFUTED, 1 UNKNOWN; " in summary([right[0], *wrong], 0.4)
    assert summary(right[:1], 0.4).startswith("1 obligation: 1 PROVED as expected; ")


def test_json_of_real_judgements_has_the_documented_fields_and_types() -> None:
    judgements = [judge(claim(PROVED)), judge(claim(REFUTED)), judge(claim(UNSUPPORTED))]
    report = json.loads(as_json(judgements))
    assert set(report) == {"version", "ok", "obligations"}
    assert (report["version"], report["ok"]) == (1, False)
    proved, refuted, unsupported = report["obligations"]
    fields = {
        "name": str, "scheme": str, "direction": str, "theorem": str, "claim": str, "verdict": str, "expected": str,
        "ok": bool, "solvers": dict, "seconds": float,
    }  # fmt: skip
    for each in (proved, refuted, unsupported):
        assert set(each) == {*fields, "reason", "counterexample"}
        assert {name: type(each[name]) for name in fields} == fields
    assert set(proved["solvers"]) == {"z3"}
    assert {name: type(value) for name, value in proved["solvers"]["z3"].items()} == {
        "answer": str, "seconds": float, "rlimit": int, "version": str,
    }  # fmt: skip
    assert (proved["solvers"]["z3"]["answer"], refuted["solvers"]["z3"]["answer"]) == ("unsat", "sat")
    assert proved["solvers"]["z3"]["version"] == z3.get_version_string()
    assert proved["counterexample"] is None
    assert refuted["counterexample"] == {"instance": "n = 1, 1 call", "steps": 3, "schedule": [], "wrong": "it is not so"}
    assert (unsupported["solvers"], unsupported["ok"]) == ({}, False)
    assert (proved["reason"], refuted["reason"]) == (None, None)
    assert unsupported["reason"] == "an index can't do that: do this instead"


def test_json_is_ok_only_where_everything_is() -> None:
    assert json.loads(as_json([judgement(PROVED), judgement(REFUTED, REFUTED)]))["ok"] is True
    assert json.loads(as_json([judgement(PROVED), judgement(UNKNOWN)]))["ok"] is False
    assert json.loads(as_json([]))["ok"] is False


@pytest.mark.parametrize(
    ("each", "answer"),
    [
        ([asked(UNSAT), asked(UNSAT)], UNSAT),
        ([asked(UNSAT), asked(SAT), asked(OPEN)], SAT),
        ([asked(UNSAT), asked(OPEN)], OPEN),
        ([asked(UNSAT), asked(OPEN, can_hold=UNSAT)], UNSAT),
        ([asked(OPEN, can_hold=UNSAT)], OPEN),
        ([asked(UNSAT), asked(OPEN, can_hold=OPEN)], OPEN),
    ],
)
def test_one_answer_for_all_queries(each: list[Asked], answer: Answer) -> None:
    assert overall(each) is answer
