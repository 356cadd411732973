"""docs/cuda.md is run from top to bottom: each file that it shows is written, each command prints what it shows."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.pages import FILE, Page
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "cuda.md"
BLOCKS = Page.at(ROOT / "docs" / "cuda.md").blocks


def test_every_block_of_the_page(tmp_path: Path) -> None:
    paths = os.pathsep.join([*(str(ROOT / name) for name in ("model", "impl", "proofs")), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "80", "NO_COLOR": "1"}
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR"):
        environment.pop(name, None)
    ran = 0
    for language, text in BLOCKS:
        if language == "python":
            name, _, body = text.removeprefix(FILE).partition("\n")
            (tmp_path / name).write_text(body, encoding="utf-8")
            continue
        assert language == "console"
        call, *wanted = text.splitlines()
        arguments = call.removeprefix("$ ").split()
        command = [sys.executable, *arguments[1:]] if arguments[0] == "python" else pytest_command(arguments)
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
        assert wanted
        rest = iter([line.rstrip() for line in run.stdout.splitlines()])
        for line in wanted:
            assert line.rstrip() in rest, f"{line}\nis not there, in this order, in\n{run.stdout}{run.stderr}"
        fails = any(line.startswith("E ") for line in wanted)
        assert run.returncode == fails, run.stdout + run.stderr
        ran += 1
    assert ran == 3


def pytest_command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_kvstage.plugin", *arguments[1:]]
