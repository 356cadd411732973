"""docs/cuda.md is run from top to bottom: each file that it shows is written, each command prints what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "cuda.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
FILE = "# file: "


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
        printed = [line.rstrip() for line in run.stdout.splitlines()]
        assert wanted
        for line in wanted:
            assert line.rstrip() in printed, f"{line}\nis not in\n{run.stdout}{run.stderr}"
        ran += 1
    assert ran == 3


def pytest_command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_kvstage.plugin", *arguments[1:]]
