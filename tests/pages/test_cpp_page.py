"""docs/cpp.md is run from top to bottom: each file that it shows is written, each command prints what it shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import Page
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
BLOCKS = Page.at(ROOT / "docs" / "cpp.md").blocks
FILE = re.compile(r"^(?://|#) file: (\S+)\n")
FIXTURE = "from kvstage_cpp.pytest_plugin import cuda_build\n\n__all__ = ['cuda_build']\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell's, in which the command kvstage is this checkout's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "kvstage"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kvstage_proofs "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if key not in ("GITHUB_ACTIONS", "CXX", "CXXFLAGS")}
    roots = [str(ROOT / root) for root in ("model", "impl", "cpp", "proofs")]
    return kept | {"PATH": f"{programs}:{kept['PATH']}", "PYTHONPATH": os.pathsep.join(roots), "CXX": "g++"}


def ran(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints."""
    run = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    quiet = "".join(line for line in run.stderr.splitlines(keepends=True) if not line.startswith("Errors while running CTest"))
    assert quiet == "", quiet
    return run.stdout


@pytest.mark.extended
def test_the_page_is_what_happens(tmp_path: Path, environment: dict[str, str]) -> None:
    for program in ("g++", "cmake", "addr2line"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    work = tmp_path / "work"
    work.mkdir()
    commands = 0
    for language, text in BLOCKS:
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                assert ran(command, work, environment) == shown, command
                commands += 1
        elif language == "sh":
            assert ran(text, work, environment) == ""
        else:
            name = FILE.match(text)
            assert name is not None
            (work / name[1]).write_text(text[name.end() :], encoding="utf-8")
    assert commands == 16
    (work / "conftest.py").write_text(FIXTURE, encoding="utf-8")
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_loader.py"]
    tested = subprocess.run(test, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed" in tested.stdout, tested.stdout
