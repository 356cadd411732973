"""The examples are run, and their page names them all."""

import re
from pathlib import Path

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_passes_and_has_both_sides(file: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.copy_example(str(file))
    result = pytester.runpytest_inprocess("-p", "kvstage_model.pytest_plugin", "-W", "error", "--strict-markers")
    text = file.read_text(encoding="utf-8")
    result.assert_outcomes(passed=text.count("\ndef test_"))
    caught = ["pytest.raises(" in test for test in text.split("\ndef test_")[1:]]
    assert any(caught), "a loop that is wrong is caught"
    assert not all(caught), "and one that is right passes"


def test_the_page_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(test_\w+\.py)\]\(\1\)", page, re.MULTILINE) == [
        "test_row_loop.py",
        "test_double_buffer.py",
        "test_two_streams.py",
        "test_ring_across_calls.py",
    ]
    assert len(FILES) == 4
