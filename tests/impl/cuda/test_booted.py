"""Runs the tests of the simulated CUDA device in a process of their own: one that has booted can't go back."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kvstage.cuda import NoCudaHereError, boot, booted
from tests.support.paths import ROOT

FOLDER = Path(__file__).parent / "booted"


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_kvstage.plugin", *arguments]
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # this run's options are not that run's
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_the_device_in_a_process_of_its_own() -> None:
    files = sorted(map(str, FOLDER.glob("booted_*.py")))
    run = pytest_in(ROOT, *files)
    assert run.returncode == 0, run.stdout[-20_000:]
    assert int(re.findall(r"(\d+) passed", run.stdout)[-1]) > 100
    assert not booted(), "this process has no device"
    assert not torch.cuda.is_available()


@pytest.mark.parametrize(
    ("owner", "name", "value", "why"),
    [
        (torch, "__version__", "2.6.0+cpu", r"knows torch 2\.13\.\*, and this is 2\.6\.0"),
        (torch.version, "cuda", "13.0", "a build of torch for GPUs"),
        (sys, "platform", "darwin", "64-bit Linux"),
    ],
)
def test_other_builds_are_refused(owner: object, name: str, value: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(NoCudaHereError, match=why):
        boot.boot()
    assert not booted()


TESTS = """
import pytest, torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

def upload(waits):
    pinned = torch.arange(8.0).pin_memory()
    rows = pinned.to("cuda", non_blocking=True)
    if waits:
        torch.cuda.synchronize()
    pinned.fill_(3)
    return rows.tolist()

def test_right():
    assert upload(True) == list(range(8))

def test_wrong():
    assert upload(False) == list(range(8))

@pytest.mark.cuda_finding("may still read")
def test_wrong_as_expected():
    upload(False)

@pytest.mark.cuda_finding("may still read")
def test_right_though_a_finding_was_expected():
    upload(True)

@pytest.mark.cuda_schedules("seeded", runs=5, seed=1)
def test_seeded(cuda_under_schedules):
    assert upload(True) == list(range(8))

@pytest.mark.cuda_schedules("exhaustive", runs=500)
def test_exhaustive():
    assert upload(True) == list(range(8))

@pytest.mark.cuda_schedules("often")
def test_mark():
    pass

def test_plain():
    pass
"""


def test_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_upload.py").write_text(TESTS, encoding="utf-8")
    run = pytest_in(tmp_path, "--kvstage-cuda", "-vv", "test_upload.py")
    assert "5 passed" in run.stdout, run.stdout + run.stderr
    assert "3 failed" in run.stdout
    for told in (
        "test_right PASSED (2 schedules)",
        "test_wrong_as_expected PASSED (2 schedules)",
        "test_seeded PASSED (6 schedules)",
        "test_plain PASSED (1 schedule)",
        "the host writes what copy_ host to device 0 on stream default may still read: a wait is missing",
        'test_upload.py:8: rows = pinned.to("cuda", non_blocking=True)',
        "test_upload.py:11: pinned.fill_(3)",
        "replay: pytest test_upload.py::test_wrong --kvstage-cuda --kvstage-replay hold:0:begin",
        "a finding with 'may still read' was expected:",
        "nothing was found",
        """pytest.mark.cuda_schedules('often',): it takes "seeded" or "exhaustive\"""",
    ):
        assert told in run.stdout, told
    again = pytest_in(tmp_path, "--kvstage-cuda", "--kvstage-replay", "hold:0:begin", "test_upload.py::test_wrong")
    assert "1 failed" in again.stdout
    assert "assert [3.0, 3.0" in again.stdout


def test_without_the_option_there_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "test_upload.py").write_text(TESTS.replace("pytestmark =", "unused ="), encoding="utf-8")
    run = pytest_in(tmp_path, "-rs", "test_upload.py::test_seeded", "test_upload.py::test_plain")
    assert "1 passed, 1 skipped" in run.stdout, run.stdout
    assert "needs --kvstage-cuda" in run.stdout


def test_a_device_that_comes_after_the_first_backward_pass_is_refused_by_name() -> None:
    program = """
import torch, kvstage
torch.ones(1, requires_grad=True).backward()
with kvstage.simulated_cuda():
    try:
        torch.ones(1, device="cuda", requires_grad=True).sum().backward()
    except kvstage.NoCudaHereError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "before the first backward pass" in run.stdout, run.stderr


@pytest.mark.extended
def test_the_accelerator_device_on_it() -> None:
    """Its tests that need a GPU, but for those that show that the GPU itself is late: issue order is not."""
    run = pytest_in(ROOT, "--kvstage-cuda", "tests/hardware", "-k", "not without_that_order and not under_way", "-rs")
    assert run.returncode == 0, run.stdout[-20_000:]
    assert int(re.findall(r"(\d+) passed", run.stdout)[-1]) > 50
