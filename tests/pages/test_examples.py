"""The examples are run, and their page names them all."""

import re
from pathlib import Path

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice
from tests.support.paths import ROOT

pytest_plugins = ["pytester"]

EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_passes_and_has_both_sides(file: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.copy_example(str(file))
    result = pytester.runpytest_inprocess("-p", "pytest_kvstage.plugin", "-W", "error", "--strict-markers")
    text = file.read_text(encoding="utf-8")
    result.assert_outcomes(passed=text.count("\ndef test_"))
    caught = ["pytest.raises(" in test for test in text.split("\ndef test_")[1:]]
    assert any(caught), "a loop that is wrong is caught"
    assert not all(caught), "and one that is right passes"


OTHER_DEVICES = """
import pytest
import torch
from kvstage import HostDevice, ThreadDevice
import test_double_buffer, test_ring_across_calls, test_row_loop, test_two_streams

@pytest.mark.parametrize("make", [ThreadDevice, HostDevice])
def test_as_they_stand(make):
    with make() as device:
        pool = (torch.arange(4)[:, None, None] * 100 + torch.arange(2)[:, None] * 10 + torch.arange(3)).to(torch.bfloat16)
        assert test_row_loop.read_rows(device, pool, 1, 5).tolist() == test_row_loop.EXPECTED
        written = torch.zeros(3, 2, 3, dtype=torch.int32)
        test_double_buffer.write_rows(device, test_double_buffer.ROWS, written)
        assert [written[place].tolist() for place in test_double_buffer.PLACES] == test_double_buffer.ROWS.tolist()
        out = torch.zeros(3, 2, 4, dtype=torch.uint8)
        test_two_streams.read_rows(device, torch.arange(24, dtype=torch.uint8).view(3, 2, 4), out)
        assert out[:, :, 0].tolist() == [[20, 0], [12, 16], [4, 8]]
        calls = test_ring_across_calls.CALLS
        assert test_ring_across_calls.uploaded(test_ring_across_calls.Uploader(device), calls) == calls
"""


def test_the_loops_run_on_other_devices_as_they_stand(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for file in FILES:
        pytester.copy_example(str(file))
    pytester.makepyfile(test_other_devices=OTHER_DEVICES)
    result = pytester.runpytest_inprocess("-p", "pytest_kvstage.plugin", "-W", "error", "test_other_devices.py")
    result.assert_outcomes(passed=2)


def test_the_page_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(test_\w+\.py)\]\(\1\)", page, re.MULTILINE) == [
        "test_row_loop.py",
        "test_double_buffer.py",
        "test_two_streams.py",
        "test_ring_across_calls.py",
    ]
    assert len(FILES) == 4
