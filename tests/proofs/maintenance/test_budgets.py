"""Budgets: what the solver may need for each obligation, for the version that the project is tested with."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.maintenance import budgets
from kvstage_proofs.maintenance.budgets import FACTOR, HOW, Budgets, faults, main, measured, stored
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.reports.json_report import as_json
from tests.support.paths import ROOT

TO_PROVE = [obligation for obligation in catalogue() if obligation.statement.expected is Verdict.PROVED]
CONSTRAINTS = ROOT / "constraints.txt"


def test_the_budgets_are_those_of_the_pinned_version() -> None:
    (pinned,) = re.findall(r"^z3-solver==([\d.]+)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned == f"{stored().z3}.0", HOW


def test_what_must_be_proved_has_a_budget_and_nothing_else_has() -> None:
    assert set(stored().steps) == {obligation.statement.name for obligation in TO_PROVE}, HOW


def _keeps_its_budget(obligation: Obligation) -> None:
    needed = measured(json.loads(as_json([judge(obligation)])))
    assert needed.steps[obligation.statement.name] > 0
    assert list(faults(needed, replace(stored(), z3=needed.z3))) == [] or needed.z3 != stored().z3


CHEAP = [each for each in TO_PROVE if each.statement.name in ("lemmas:L1", "by_row:P1", "per_row.read:T1", "per_row.write:T3")]


@pytest.mark.parametrize("obligation", CHEAP, ids=lambda obligation: obligation.statement.name)
def test_cheap_obligations_keep_their_budget(obligation: Obligation) -> None:
    _keeps_its_budget(obligation)


@pytest.mark.extended
@pytest.mark.parametrize("obligation", TO_PROVE, ids=lambda obligation: obligation.statement.name)
def test_each_obligation_keeps_its_budget(obligation: Obligation) -> None:
    _keeps_its_budget(obligation)


KEPT = Budgets("1.2.3", {"a": 100_000, "b": 70_000, "small": 7})


@pytest.mark.parametrize(
    ("needed", "number"),
    [
        ({"a": 100_000, "b": 70_000}, 0),
        ({"a": 200_000, "b": 140_000}, 0),
        ({"a": 1, "b": 140_001}, 1),
        ({"a": 200_001, "b": 140_001}, 2),
        ({"a": 100_000, "c": 1}, 1),
        ({"small": 100_000}, 0),
        ({"small": 100_001}, 1),
        ({}, 0),
    ],
)
def test_twice_the_budget_is_the_most_and_none_is_too_little(needed: dict[str, int], number: int) -> None:
    found = list(faults(Budgets("1.2.3", needed), KEPT))
    assert len(found) == number
    assert all("--write" in fault for fault in found)
    assert list(faults(Budgets("1.2.4", needed), KEPT)) == []


def report(steps: int, version: str = "1.2.3") -> dict[str, object]:
    solver = {"answer": "unsat", "seconds": 0.1, "rlimit": steps, "version": version}
    return {"obligations": [{"name": "a", "solvers": {"z3": solver}}, {"name": "refuted", "solvers": {}}]}


@pytest.mark.parametrize(("steps", "version", "code"), [(200_000, "1.2.3", 0), (200_001, "1.2.3", 1), (200_001, "4.5.6", 0)])
def test_the_command_compares_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], steps: int, version: str, code: int
) -> None:
    monkeypatch.setattr(budgets, "FILE", tmp_path / "budgets.json")
    (tmp_path / "budgets.json").write_text(str(KEPT))
    (tmp_path / "report.json").write_text(json.dumps(report(steps, version)))
    assert main(["--report", str(tmp_path / "report.json")]) == code
    shown = capsys.readouterr().out
    assert ("nothing is compared" in shown) == (version != KEPT.z3)
    assert ("a needs 200001 steps, more than 2 times its budget of 100000" in shown) == bool(code)


def test_the_command_writes_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "FILE", tmp_path / "budgets.json")
    (tmp_path / "report.json").write_text(json.dumps(report(123)))
    assert main(["--write", "--report", str(tmp_path / "report.json")]) == 0
    assert stored() == Budgets("1.2.3", {"a": 123})


def test_a_report_of_no_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="no versions of z3"):
        measured({"obligations": []})


def test_the_count_hardly_varies() -> None:
    counts = [judge(CHEAP[1]).rlimit for _ in range(3)]
    assert max(counts) < FACTOR * min(counts)
