"""What a scheme yields is frozen for the type checker, and quick to make."""

import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from kvstage_model.language import operations
from kvstage_model.language.buffers import Buffer, Memory, Paged, Rows
from kvstage_model.language.fast_dataclass import fast_dataclass
from kvstage_model.language.partitions import Piece, Run
from tests.support.paths import ROOT

RECORDS = [Buffer, Rows, Paged, Piece, Run, operations.Event, operations.Copy, operations.HostCopy, operations.SyncStream]
CHANGES = """
from dataclasses import replace
from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Copy

def change(copy: Copy, rows: Rows) -> Copy:
    copy.stream = "other"
    rows.count = 3
    return replace(copy, stream="other")
"""


@pytest.mark.parametrize("kind", RECORDS)
def test_records_are_slotted_dataclasses_that_compare_by_identity(kind: type) -> None:
    assert is_dataclass(kind)
    one, other = (kind(*range(len(fields(kind)))) for _ in range(2))
    assert not hasattr(one, "__dict__")
    assert one != other
    assert one == one
    assert len({one, other}) == 2


def test_replace_makes_another() -> None:
    rows = Buffer("stage", Memory.PINNED, 2, 4).at(1, 0, 3)
    assert (replace(rows, slot=0).slot, rows.slot) == (0, 1)


def test_what_is_declared_to_change_is_no_record() -> None:
    with pytest.raises(AssertionError, match="plain dataclass"):
        fast_dataclass(frozen=False, slots=True)


@pytest.mark.extended
def test_the_type_checker_takes_them_for_frozen(tmp_path: Path) -> None:
    """At run time nothing stops an assignment."""
    (tmp_path / "changes.py").write_text(CHANGES, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "changes.py")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert run.stdout.count("is read-only") == 2
