"""docs/traces.md is run from top to bottom: each file that it shows is written, each command prints what it shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import FILE, Page
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
BLOCKS = Page.at(ROOT / "docs" / "traces.md").blocks
PROGRAMS = {"kvstage": f"{sys.executable} -m kvstage_proofs", "python": sys.executable}


def ran(command: str, folder: Path) -> str:
    """What a command prints, through a shell that knows what * is."""
    program, rest = command.split(" ", 1)
    environment = {key: value for key, value in os.environ.items() if key != "GITHUB_ACTIONS"}
    shell = f"{PROGRAMS.get(program, program)} {rest}"
    run = subprocess.run(shell, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.stderr == "", run.stderr
    return run.stdout


def test_the_page_is_what_happens(tmp_path: Path) -> None:
    assert shutil.which("g++"), "the C++ example needs g++: install it, or build the example with another compiler"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = 0
    for language, text in BLOCKS:
        if language == "python":
            name, _, content = text.removeprefix(FILE).partition("\n")
            (tmp_path / name).write_text(content, encoding="utf-8")
        elif language == "console":
            for part in text.split("$ ")[1:]:
                command, _, shown = part.partition("\n")
                assert ran(command, tmp_path) == shown, command
                commands += 1
        else:
            assert language == "text"
            drawn = ran("kvstage traces per_row -o pictures --format text", tmp_path)
            assert "8 schedules" in drawn
            (picture,) = (tmp_path / "pictures").glob("per_row-without*.read/race.txt")
            assert picture.read_text(encoding="utf-8") == text
    assert commands == 8


def test_the_picture_is_the_one_that_the_command_draws(tmp_path: Path) -> None:
    ran("""kvstage traces "ring without SyncEvent of 'filled'.read" -o pictures --format svg""", tmp_path)
    (picture,) = (tmp_path / "pictures").glob("*/race.svg")
    assert picture.read_text(encoding="utf-8") == (ROOT / "docs" / "race.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "{", '{"program": [1,', '{"program": []}', "[" * 100])
def test_the_example_refuses_what_is_no_trace(text: str, tmp_path: Path, program: Path) -> None:
    (tmp_path / "trace.json").write_text(text, encoding="utf-8")
    run = subprocess.run([program, tmp_path / "trace.json"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(("no JSON at byte", "the trace lacks"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, compiled without a warning."""
    made, source = tmp_path_factory.mktemp("cpp") / "deferred_copy", ROOT / "examples" / "cpp" / "deferred_copy.cpp"
    assert ran(f"g++ -std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Werror -o {made} {source}", made.parent) == ""
    return made
