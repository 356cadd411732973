"""The example of an engine's staging: by row, by row with the wait hoisted, and by the emitted block loop in its place."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.emitted import HEADERS, compiled
from tests.support.paths import ROOT
from tests.support.tiers import often

EXAMPLE = ROOT / "examples" / "cpp" / "paged_staging"
needs_the_runtime = pytest.mark.skipif(find_spec("kvstage_cpp") is None, reason="needs kvstage_cpp, the CUDA runtime without a GPU")
LEG = re.compile(r"^(.{28}) +(\d+) copies +(\d+) synchronizes +[\d.]+ ms  (.*)$", re.MULTILINE)


@pytest.mark.extended  # with g++ and C++17, the page of docs does it
@pytest.mark.parametrize("standard", often(["-std=c++17", "-std=c++20"], 1))
@pytest.mark.parametrize("compiler", often(["g++", "clang++-16"], 1))
def test_both_loops_bring_equal_bytes_and_the_hoisted_one_does_not(compiler: str, standard: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, standard, "-O2", "-pthread", compiler=compiler, source=EXAMPLE / "paged_staging.cpp")
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert [(name.strip(), int(copies), int(waits), bytes_) for name, copies, waits, bytes_ in LEG.findall(run.stdout)] == [
        ("load, row by row", 180_224, 180_224, "all bytes right"),
        ("load, synchronize hoisted", 180_224, 22, "WRONG BYTES"),
        ("load, emitted block loop", 5_632, 5_632, "all bytes right"),
        ("store, row by row", 880, 880, "all bytes right"),
        ("store, emitted block loop", 44, 44, "all bytes right"),
    ]
    assert re.search(r"^the step's load, copies on a thread: [\d.]+ ms row by row, [\d.]+ ms by block$", run.stdout, re.MULTILINE)


@needs_the_runtime
@pytest.mark.parametrize(("which", "races"), often([("hoisted", 1), ("row", 0), ("block", 0)], 1))
def test_the_judge_passes_the_loops_and_finds_the_hoisted_wait_with_both_lines(which: str, races: int, tmp_path: Path) -> None:
    run = judged(EXAMPLE / "on_cuda.cpp", tmp_path, which)
    assert run.returncode == races, run.stdout + run.stderr
    assert run.stdout.count("RACE") == races
    if races:
        first, second = _line("on_cuda.cpp", "cudaMemcpyAsync"), _line("caches.hpp", "std::memcpy(&half")
        assert f"first:  on_cuda.cpp:{first}: cudaMemcpyAsync(" in run.stdout
        assert f"second: caches.hpp:{second}: std::memcpy(&half" in run.stdout


@needs_the_runtime
def test_the_judge_passes_the_emitted_ring_over_the_cuda_backend(tmp_path: Path) -> None:
    run = judged(Path(__file__).parent / "on_cuda_backend.cpp", tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("clean: ")


def judged(source: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A program with the runtime, under all schedules of the judge."""
    from kvstage_cpp.build import Toolchain, build

    program = build([source], Toolchain(sanitizer="thread"), folder, "-I", str(HEADERS))
    command = [sys.executable, "-m", "kvstage_proofs", "cpp", "run", "--", str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _line(file: str, words: str) -> int:
    lines = (EXAMPLE / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)
