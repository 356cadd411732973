"""The proofs under another version of z3, in an environment of its own."""

import json
from pathlib import Path

import pytest

from kvstage_proofs.maintenance import versions
from kvstage_proofs.maintenance.versions import VersionError, VersionRun, differences, main, run

OLDEST, LATER = "4.13.4.0", "4.16.0.0"
"""The oldest version that the package asks for, and one between it and the pinned one."""


@pytest.mark.extended
@pytest.mark.parametrize("version", [OLDEST, LATER])
def test_an_older_version_gives_the_same_verdicts(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    targets = ["lemmas", "by_row", "per_row.read", "per_row waiting behind the host's copy.read"]
    assert main([version, *(word for target in targets for word in ("--target", target))]) == 0
    assert f"z3 {version}: " in capsys.readouterr().out


@pytest.mark.extended
def test_a_version_that_is_none_can_not_be_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(VersionError, match=r"z3-solver 0\.0\.0\.1 can't be installed"):
        run("0.0.0.1", ["lemmas"], tmp_path)
    assert main(["0.0.0.1", "--target", "lemmas"]) == 2
    assert "can't be installed" in capsys.readouterr().err


def of(version: str, wrong: tuple[str, ...] = (), **verdicts: str) -> VersionRun:
    return VersionRun(version, verdicts, wrong, 1.0)


def test_verdicts_that_differ_or_are_wrong_are_named() -> None:
    same = [of("1.0", a="PROVED", b="REFUTED"), of("2.0", a="PROVED", b="REFUTED")]
    assert differences(same) == []
    assert differences([*same, of("3.0", a="UNKNOWN", b="REFUTED")]) == [
        "a: PROVED with 1.0, PROVED with 2.0, UNKNOWN with 3.0",
    ]
    assert differences([*same, of("3.0", a="PROVED")]) == ["b: REFUTED with 1.0, REFUTED with 2.0, no verdict with 3.0"]
    wrong = [of(version, ("a",), a="UNKNOWN") for version in ("1.0", "2.0")]
    assert differences(wrong) == ["a: UNKNOWN with 1.0, UNKNOWN with 2.0"]


def report(version: str) -> dict[str, object]:
    entry = {"name": "a", "verdict": "PROVED", "ok": True, "seconds": 1.0, "solvers": {"z3": {"version": version}}}
    return {"obligations": [entry]}


def test_another_version_that_answers_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where an installed z3 hides the one that was asked for, its verdicts must not count as the other's."""
    monkeypatch.setattr(versions, "_environment", lambda version, folder: Path("python"))

    def proves(command: object, variables: dict[str, str], folder: Path) -> object:
        (folder / "report.json").write_text(json.dumps(report("5.6.7")))
        return object()

    monkeypatch.setattr(versions, "_call", proves)
    assert run("5.6.7.0", [], tmp_path).verdicts == {"a": "PROVED"}
    (tmp_path / "other").mkdir()
    with pytest.raises(VersionError, match=r"asked for z3 4\.13\.4\.0, and \['5\.6\.7'\] answered"):
        run("4.13.4.0", [], tmp_path / "other")


def test_only_these_packages_are_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Next to an installed package lie torch and another z3."""
    seen: list[str] = []
    monkeypatch.setattr(versions, "_environment", lambda version, folder: Path("python"))

    def proves(command: object, variables: dict[str, str], folder: Path) -> object:
        seen.extend(path.name for path in Path(variables["PYTHONPATH"]).iterdir())
        (folder / "report.json").write_text(json.dumps(report("5.6.7")))
        return object()

    monkeypatch.setattr(versions, "_call", proves)
    run("5.6.7.0", [], tmp_path)
    assert sorted(seen) == ["kvstage_model", "kvstage_proofs"]
