"""The example of an engine's staging: by row, by row with the wait hoisted, and by the emitted block loop in its place."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.emitted import HEADERS, compiled
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "cpp" / "paged_staging"
LEG = re.compile(r"^(.{28}) +(\d+) copies +(\d+) synchronizes +[\d.]+ ms  (.*)$", re.MULTILINE)


@pytest.mark.extended  # with g++ and C++17, the page of docs does it
@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
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


@pytest.mark.skipif(find_spec("kvstage_cpp") is None, reason="needs kvstage_cpp, the CUDA runtime without a GPU")
@pytest.mark.parametrize(("which", "code"), [("row", 0), ("block", 0), ("hoisted", 1)])
def test_the_judge_passes_the_loops_and_finds_the_hoisted_wait_with_both_lines(which: str, code: int, tmp_path: Path) -> None:
    from kvstage_cpp.build import Toolchain, build

    program = build([EXAMPLE / "on_cuda.cpp"], Toolchain(sanitizer="thread"), tmp_path, "-I", str(HEADERS))
    command = [sys.executable, "-m", "kvstage_proofs", "cpp", "run", "--", str(program), which]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stdout + run.stderr
    assert run.stdout.count("RACE") == code
    if code:
        first, second = _line("on_cuda.cpp", "cudaMemcpyAsync"), _line("caches.hpp", "std::memcpy(&half")
        assert f"first:  on_cuda.cpp:{first}: cudaMemcpyAsync(" in run.stdout
        assert f"second: caches.hpp:{second}: std::memcpy(&half" in run.stdout


def _line(file: str, words: str) -> int:
    lines = (EXAMPLE / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)
