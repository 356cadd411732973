"""docs/schedules.md is run from top to bottom: each file that it shows is written, each command prints what it shows."""

import re
import sys

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice
from tests.support.pages import FILE, Page
from tests.support.paths import ROOT

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "schedules.md"
BLOCKS = Page.at(ROOT / "docs" / "schedules.md").blocks


def timeless(text: str) -> str:
    """Text without its durations, and without what hangs over the ends of its lines."""
    text = "\n".join(map(str.rstrip, text.splitlines()))
    return re.sub(r"\b\d+\.\d+s\b", "N s", text)


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty folder, with nothing of this run's settings around it."""
    for name in ("PYTEST_ADDOPTS", "CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file is written again within a second
    return pytester


def write(folder: pytest.Pytester, text: str) -> None:
    """Writes a file that the page shows, if that is what a block does."""
    if text.startswith(FILE):
        name, _, content = text.removeprefix(FILE).partition("\n")
        (folder.path / name).write_text(content, encoding="utf-8")


def printed(folder: pytest.Pytester, command: str) -> str:
    program, *arguments = command.split()
    assert program == "pytest"
    return timeless("\n".join(folder.runpytest_inprocess("-p", "pytest_kvstage.plugin", *arguments).outlines))


def test_the_page_is_what_happens(folder: pytest.Pytester) -> None:
    ran = []
    for language, text in BLOCKS:
        write(folder, text)
        if language == "console":
            command, _, shown = text.removeprefix("$ ").partition("\n")
            ran.append(printed(folder, command))
            assert ran[-1] == timeless(shown)
    assert ["1 failed" in found for found in ran] == [True, True, True, False, False, False]
    assert "14 schedules in 1 test" in ran[3]


def test_the_replay_that_the_page_shows_fails_alike(folder: pytest.Pytester) -> None:
    for _, text in BLOCKS[:2]:
        write(folder, text)
    shown = timeless(next(text for language, text in BLOCKS if language == "console"))
    replay = re.search(r"replay: (pytest .*)$", shown, re.MULTILINE)
    assert replay is not None
    errors = [line for line in printed(folder, f"{replay[1]} -q --tb=short").splitlines() if line.startswith("E  ")]
    assert errors == [line for line in shown.splitlines() if line.startswith("E  ")]
    assert len(errors) > 8


def test_the_program_without_pytest_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = (text for language, text in BLOCKS if language == "python" and not text.startswith(FILE))
    (shown,) = (text for language, text in BLOCKS if language == "text")
    exec(compile(program, "<the program on the page>", "exec"), {})
    assert capsys.readouterr().out == shown


def test_every_kind_of_block_is_known() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "console", "text"}
