"""README is run: its Python blocks, its console blocks with what they print, and its set-up commands by CI."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
FILE = "# file: "


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def timeless(text: str) -> str:
    """Text without its durations, and without the padding in front of them."""
    return re.sub(r" +\d+(\.\d+)? s\b", " N s", text)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with every file that README shows."""
    for text in blocks("python"):
        if text.startswith(FILE):
            name, _, content = text.removeprefix(FILE).partition("\n")
            (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def test_every_kind_of_block_is_known() -> None:
    assert {name for name, _ in BLOCKS} == {"python", "console", "sh", "text"}
    assert len(blocks("console")) >= 2
    assert len(blocks("sh")) == 2


@pytest.mark.parametrize("text", blocks("console"), ids=lambda text: text.partition("\n")[0])
def test_a_console_block_prints_what_it_shows(text: str, files: Path) -> None:
    command, _, shown = text.removeprefix("$ ").partition("\n")
    program, *arguments = command.split()
    assert program == "kvstage"
    environment = {key: value for key, value in os.environ.items() if key != "GITHUB_ACTIONS"} | {"NO_COLOR": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "kvstage_proofs", *arguments],
        cwd=files,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert timeless(run.stdout) == timeless(shown)


def test_the_wrong_loop_is_refuted_and_the_right_one_proved() -> None:
    wrong, right = blocks("console")[:2]
    assert "REFUTED" in wrong
    assert "<--" in wrong
    assert "REFUTED" not in right
    assert right.count("PROVED  ") == len(right.splitlines()) - 2 >= 3


def test_the_double_buffer_is_proved_with_its_last_two_lines_swapped_and_explained_as_it_stands(files: Path) -> None:
    text = (files / "double.py").read_text(encoding="utf-8")
    record, copy = (line for line in text.splitlines(keepends=True) if "RecordEvent(E" in line or 'Copy("h2d"' in line)
    (files / "swapped.py").write_text(text.replace(record + copy, copy + record), encoding="utf-8")
    for arguments, code, shown in (("prove swapped.py:upload", 0, "PROVED"), ("explain double.py:upload", 1, "missing")):
        kvstage = [sys.executable, "-m", "kvstage_proofs", *arguments.split()]
        run = subprocess.run(kvstage, cwd=files, capture_output=True, text=True, check=False)
        assert run.returncode == code, run.stderr
        assert shown in run.stdout


def test_the_example_in_model_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = (text for text in blocks("python") if not text.startswith(FILE))
    exec(compile(example, "<the example in README>", "exec"), {})
    assert capsys.readouterr().out == "3 copies and 3 waits for 60 rows\n"


def test_ci_runs_the_set_up_commands_as_they_stand() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"< <\((sed .*? README\.md)\)\n", script)
    assert found is not None
    commands = subprocess.run(["bash", "-c", found[1]], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert commands == [text.strip() for text in blocks("sh")]
    assert commands[0].endswith("kvstage prove")
    assert "pytest" in commands[1]
    assert all("-c constraints.txt" in command for command in commands)


def test_the_benchmarks_tables_are_those_that_their_page_shows() -> None:
    page = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    assert len(blocks("text")) == 2
    assert all(table in page for table in blocks("text"))
