"""The command line's reports from outside: JSON and JUnit XML files, and `kvstage explain`."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from kvstage_proofs.commands import prove
from kvstage_proofs.commands.main import main
from kvstage_proofs.obligation import Theorem, Verdict
from tests.support.claims import (
    HEAD,
    PLAIN,
    PROVED,
    REFUTED,
    UNKNOWN,
    UNSUPPORTED,
    WAIT,
    claim,
    user_file,
)

Captured = pytest.CaptureFixture[str]
SetCatalogue = Callable[..., None]


# -- the report as JSON


def test_the_json_report(catalogue_of: SetCatalogue, tmp_path: Path) -> None:
    catalogue_of(claim(PROVED), claim(REFUTED, REFUTED), claim(UNKNOWN))
    assert main(["prove", "--json", str(tmp_path / "report.json")]) == 3
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["version"], report["ok"], len(report["obligations"])) == (1, False, 3)
    found = [(each["verdict"], each["ok"]) for each in report["obligations"]]
    assert found == [("PROVED", True), ("REFUTED", True), ("UNKNOWN", False)]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_report_that_cant_be_written_is_told_before_the_proofs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(prove, "judge_all", lambda *_: pytest.fail("it went on to the proofs"))
    for file, why in ((tmp_path / "gone" / "report.json", "No such file or directory"), (tmp_path, "it is no regular file")):
        assert main(["prove", "per_row.read:T7", "--json", str(file)]) == 2
        assert capsys.readouterr() == ("", f"kvstage: can't write {file}: {why}\n")


def test_a_run_that_fails_leaves_the_old_report_alone(catalogue_of: SetCatalogue, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("the old one", encoding="utf-8")
    catalogue_of(PLAIN.of(PROVED, "plain"))
    assert main(["prove", "plain", "nothing", "--json", str(report)]) == 2
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("report.json", "the old one")]
    assert main(["prove", "plain", "--json", str(report)]) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["ok"] is True


# -- the report as JUnit XML


def test_the_junit_report(catalogue_of: SetCatalogue, tmp_path: Path) -> None:
    catalogue_of(claim(PROVED), claim(REFUTED), claim(UNSUPPORTED), claim(REFUTED, REFUTED))
    report = tmp_path / "report.xml"
    assert main(["prove", "--junit-xml", str(report), "--json", str(tmp_path / "report.json")]) == 1
    (suite,) = ET.parse(report).getroot()
    assert [suite.attrib[count] for count in ("tests", "failures", "errors")] == ["4", "1", "1"]
    (failure,) = suite.iter("failure")
    assert failure.text is not None
    assert failure.text.endswith("\nwrong: it is not so")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "report.xml"]


@pytest.mark.parametrize("target", ["gone.py:read", "nothing"])
def test_a_run_that_cant_begin_is_an_error_in_the_junit_report(target: str, tmp_path: Path, capsys: Captured) -> None:
    report = tmp_path / "report.xml"
    assert main(["prove", target, "--junit-xml", str(report)]) == 2
    (error,) = ET.parse(report).getroot().iter("error")
    assert error.attrib["type"] == "internal"
    assert f"kvstage: {error.text}\n" == capsys.readouterr().err


def test_an_error_of_ours_is_in_the_junit_report_with_what_was_judged(catalogue_of: SetCatalogue, tmp_path: Path) -> None:
    broken = Theorem[int]("T0", "broken", "It is so.", lambda number: iter([1 // number]), lambda *_: None)
    catalogue_of(claim(PROVED), broken.of(0, "divides by nothing"), claim(PROVED))
    report = tmp_path / "report.xml"
    assert main(["prove", "--junit-xml", str(report)]) == 2
    (suite,) = ET.parse(report).getroot()
    assert [suite.attrib[count] for count in ("tests", "failures", "errors")] == ["2", "0", "1"]
    (error,) = suite.iter("error")
    assert "ZeroDivisionError" in (error.text or "")


def test_a_junit_report_that_cant_be_written_is_told_before_the_proofs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(prove, "judge_all", lambda *_: pytest.fail("it went on to the proofs"))
    assert main(["prove", "per_row.read:T7", "--junit-xml", str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", f"kvstage: can't write {tmp_path}: it is no regular file\n")


# -- explain


@pytest.mark.parametrize(
    ("verdict", "expected", "code"), [(PROVED, PROVED, 0), (REFUTED, REFUTED, 0), (REFUTED, PROVED, 1), (UNKNOWN, PROVED, 3)]
)
def test_explain_ends_as_prove_does(
    catalogue_of: SetCatalogue, capsys: Captured, verdict: Verdict, expected: Verdict, code: int
) -> None:
    catalogue_of(claim(PROVED), claim(verdict, expected))
    assert main(["explain", f"gets {verdict.value}"]) == main(["prove", f"gets {verdict.value}"]) == code


def test_explain_tells_of_all_that_a_name_stands_for(catalogue_of: SetCatalogue, capsys: Captured) -> None:
    catalogue_of(claim(PROVED), claim(REFUTED, REFUTED))
    assert main(["explain", "gets REFUTED"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("gets REFUTED:T0  a plain claim: REFUTED, as expected\n")
    assert "gets PROVED" not in out
    assert main(["explain", "nothing"]) == 2


def test_explain_judges_a_file_and_draws_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    user_file(tmp_path, HEAD.replace(WAIT, ""))
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "mine.py:read"]) == 1
    out = capsys.readouterr().out
    assert "mine.py:read:T1  no hazard: REFUTED, expected PROVED\n" in out
    assert "mine.py:read:T7  bounds: PROVED, as expected\n" in out
    assert out.count("the host waits for stream copy (SyncStream)") == 2  # T1 and T3
