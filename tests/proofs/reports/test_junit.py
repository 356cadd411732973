"""JUnit XML: what CI servers demand of it, read back from the text."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from kvstage_proofs.obligation import Judgement, Verdict
from kvstage_proofs.reports.junit import as_junit
from tests.support.claims import BROKEN, PROVED, REFUTED, UNKNOWN, UNSUPPORTED, VACUOUS, judgement

COUNTS = {"tests", "failures", "errors", "time"}


def read(*judgements: Judgement, broke_off: str = "") -> tuple[ET.Element, list[ET.Element]]:
    """The suite and its testcases, once all that a reader demands of every report is checked."""
    text = as_junit(judgements, broke_off)
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n')
    suites = ET.fromstring(text.encode())
    assert (suites.tag, [child.tag for child in suites]) == ("testsuites", ["testsuite"])
    (suite,) = suites
    assert set(suite.attrib) >= {"name", *COUNTS}
    cases = list(suite)
    assert {case.tag for case in cases} <= {"testcase"}
    for each in (suites, suite):
        assert int(each.attrib["tests"]) == len(cases)
        assert int(each.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(each.attrib["errors"]) == len(suite.findall("testcase/error"))
        assert float(each.attrib["time"]) == pytest.approx(sum(float(case.attrib["time"]) for case in cases))
    for case in cases:
        assert set(case.attrib) == {"classname", "name", "time"}
        assert len(case) <= 1, "a testcase has one outcome"
        assert all(set(outcome.attrib) == {"message", "type"} for outcome in case)
    return suite, cases


def outcome(case: ET.Element) -> tuple[str, str, str]:
    (found,) = case
    return found.tag, found.attrib["type"], found.attrib["message"]


def test_what_is_as_expected_passes() -> None:
    suite, cases = read(judgement(PROVED), judgement(REFUTED, REFUTED), judgement(UNSUPPORTED, UNSUPPORTED))
    assert [(case.attrib["classname"], case.attrib["name"]) for case in cases] == [("loop.read", "T0 a plain claim")] * 3
    assert [case.attrib["time"] for case in cases] == ["0.250"] * 3
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["time"]) == ("0", "0", "0.750")


@pytest.mark.parametrize(
    ("verdict", "expected", "tag"),
    [
        (REFUTED, PROVED, "failure"),
        (PROVED, REFUTED, "failure"),
        (VACUOUS, PROVED, "failure"),
        (UNKNOWN, PROVED, "failure"),
        (Verdict.DISAGREE, PROVED, "failure"),
        (UNSUPPORTED, PROVED, "error"),
    ],
)
def test_a_wrong_verdict_is_a_failure_and_what_has_no_meaning_is_an_error(verdict: Verdict, expected: Verdict, tag: str) -> None:
    _, (right, wrong) = read(judgement(PROVED), judgement(verdict, expected))
    assert list(right) == []
    assert outcome(wrong) == (tag, verdict.value, f"{verdict.value}, expected {expected.value}")


def test_a_failure_shows_the_claim_the_reason_and_the_schedule() -> None:
    _, (case,) = read(replace(judgement(REFUTED), counterexample=BROKEN, reason="for a reason"))
    (failure,) = case
    assert failure.text is not None
    assert failure.text.splitlines() == ["It is so.", "for a reason", "instance: n = 1, 1 call", "wrong: it is not so"]


def test_a_run_that_broke_off_is_an_error_beside_what_was_judged() -> None:
    _, (judged, run) = read(judgement(PROVED), broke_off="a worker died")
    assert list(judged) == []
    assert outcome(run)[:2] == ("error", "internal")
    assert run[0].text == "a worker died"
    _, (alone,) = read(broke_off="nothing was judged")
    assert outcome(alone)[0] == "error"


def test_text_that_xml_cant_hold_is_spelled_out() -> None:
    reason = "colour \x1b[1m, zero \x00, half a pair \ud800, none \uffff; fine: \t é 漢 🙂 <&>\"'"
    with pytest.raises(ET.ParseError):
        ET.fromstring("<a>\x1b</a>")
    _, (case,) = read(replace(judgement(UNKNOWN), reason=reason))
    assert case[0].text == "It is so.\ncolour #x1B[1m, zero #x00, half a pair #xD800, none #xFFFF; fine: \t é 漢 🙂 <&>\"'"
