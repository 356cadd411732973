"""docs/emit.md is run from top to bottom: commands print what it shows, but for their times, and the header is the one it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import Page
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "emit.md").read_text(encoding="utf-8")
BLOCKS = Page.at(ROOT / "docs" / "emit.md").blocks


def ran(command: str, folder: Path) -> str:
    program, rest = command.split(" ", 1) if " " in command else (command, "")
    environment = {key: value for key, value in os.environ.items() if key != "GITHUB_ACTIONS"}
    shell = f"{sys.executable} -m kvstage_proofs {rest}" if program == "kvstage" else command
    run = subprocess.run(shell, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def timeless(text: str) -> str:
    return re.sub(r" *[\d.]+ ms", " ms", text)


@pytest.mark.extended
def test_the_page_is_what_happens(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands, printed = 0, ""
    for language, text in BLOCKS:
        if language == "console":
            for part in text.split("$ ")[1:]:
                command, _, shown = part.partition("\n")
                assert timeless(ran(command, tmp_path)) == timeless(shown), command
                commands += 1
        elif language == "cpp":
            assert text in (tmp_path / "emitted" / "per_block.hpp").read_text(encoding="utf-8")
        elif language == "python":
            printed = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
        else:
            assert language == "text"
            assert printed == text
    assert commands == 3


def test_numbers_beside_the_times_are_compared() -> None:
    assert timeless("5632 copies   89.3 ms  all") == timeless("5632 copies  101.0 ms  all") != timeless("5633 copies  1.0 ms  all")
