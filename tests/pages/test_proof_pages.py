"""docs/schemes.md and docs/proofs.md are run: their files are written, and their commands print what is shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvstage_model import language
from kvstage_model.schemes.registry import ENTRIES
from kvstage_proofs.obligation import Verdict
from tests.support.pages import Page, prints
from tests.support.paths import ROOT

SCHEMES, PROOFS = (ROOT / "docs" / name for name in ("schemes.md", "proofs.md"))


@pytest.mark.parametrize("path", [SCHEMES, PROOFS], ids=lambda path: path.name)
def test_the_commands_print_what_is_shown(path: Path, tmp_path: Path) -> None:
    page = Page.at(path)
    page.write_files(tmp_path)
    assert {name for name, _ in page.blocks} <= {"python", "console"}
    for text in page.of("console"):
        printed, shown = prints(text, tmp_path)
        assert printed == shown
    assert page.of("console")


def test_the_double_buffer_is_proved_with_its_last_two_lines_swapped_and_explained_as_it_stands(tmp_path: Path) -> None:
    Page.at(SCHEMES).write_files(tmp_path)
    text = (tmp_path / "double.py").read_text(encoding="utf-8")
    record, copy = (line for line in text.splitlines(keepends=True) if "RecordEvent(E" in line or 'Copy("h2d"' in line)
    (tmp_path / "swapped.py").write_text(text.replace(record + copy, copy + record), encoding="utf-8")
    for arguments, code, shown in (("prove swapped.py:upload", 0, "PROVED"), ("explain double.py:upload", 1, "missing")):
        kvstage = [sys.executable, "-m", "kvstage_proofs", *arguments.split()]
        run = subprocess.run(kvstage, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == code, run.stderr
        assert shown in run.stdout


def test_the_pages_name_every_verdict_and_every_scheme_and_operations_that_there_are() -> None:
    schemes, proofs = (path.read_text(encoding="utf-8") for path in (SCHEMES, PROOFS))
    assert all(f"| {verdict.value} |" in schemes for verdict in Verdict)
    assert all(f"`{entry.name}`" in proofs for entry in ENTRIES)
    for word in ("Copy", "SyncStream", "RecordEvent", "SyncEvent", "WaitEvent", "QueryEvent", "HostCopy", "Launch", "Release"):
        assert f"`{word}(" in schemes
        assert hasattr(language, word)
