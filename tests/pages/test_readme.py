"""README is run: its Python blocks, its console blocks with what they print, and its set-up commands by CI."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.pages import FILE, Page, prints
from tests.support.paths import ROOT

README = Page.at(ROOT / "README.md")
MOST_WORDS = 1480
"""A front page is read in some minutes; the rest is in docs/."""


def test_every_kind_of_block_is_known() -> None:
    assert {name for name, _ in README.blocks} == {"python", "console", "sh", "text"}
    assert len(README.of("console")) == len(README.of("sh")) == 2
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("text", README.of("console"), ids=lambda text: text.partition("\n")[0])
def test_a_console_block_prints_what_it_shows(text: str, tmp_path: Path) -> None:
    README.write_files(tmp_path)
    printed, shown = prints(text, tmp_path)
    assert printed == shown


def test_the_wrong_loop_is_refuted_and_the_right_one_proved() -> None:
    wrong, right = README.of("console")
    assert "REFUTED" in wrong
    assert "<--" in wrong
    assert "REFUTED" not in right
    assert right.count("PROVED  ") == 1


def test_the_fix_in_words_is_the_librarys_own_loop(tmp_path: Path) -> None:
    """The wait between the two, in place of the epilogue: then it is proved."""
    README.write_files(tmp_path)
    text = (tmp_path / "hoisted.py").read_text(encoding="utf-8")
    use = "        yield HostCopy("
    fixed = text.replace(use, f'        yield SyncStream("copy")\n{use}').replace(' epilogue=(SyncStream("copy"),),', "")
    fixed = fixed.replace("Iterator[Copy | HostCopy]", "Iterator[Copy | SyncStream | HostCopy]")
    assert fixed.count('yield SyncStream("copy")') == 1
    assert "epilogue" not in fixed
    (tmp_path / "fixed.py").write_text(fixed, encoding="utf-8")
    printed, _ = prints("$ kvstage prove fixed.py:read\n", tmp_path)
    assert printed.count("PROVED  ") == 4
    assert "REFUTED" not in printed


def test_the_example_in_model_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = (text for text in README.of("python") if not text.startswith(FILE))
    exec(compile(example, "<the example in README>", "exec"), {})
    assert capsys.readouterr().out == "3 copies and 3 waits for 60 rows\n"


def test_ci_runs_the_set_up_commands_as_they_stand() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"< <\((sed .*? README\.md)\)\n", script)
    assert found is not None
    commands = subprocess.run(["bash", "-c", found[1]], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert commands == [text.strip() for text in README.of("sh")]
    assert all("-c constraints.txt" in command for command in commands)


def test_nox_runs_the_same_commands() -> None:
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    for command, session in zip(README.of("sh"), ("prove", "test"), strict=True):
        program = command.strip().rpartition("&& .venv/bin/")[2]
        assert f'"{session}": ["{program}"]' in text


def test_the_benchmarks_tables_are_those_that_their_page_shows() -> None:
    page = (ROOT / "bench" / "README.md").read_text(encoding="utf-8").splitlines()
    (table,) = README.of("text")
    assert len(table.splitlines()) == 4
    assert all(line in page for line in table.splitlines())
