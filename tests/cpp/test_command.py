"""`kvstage cpp` from its arguments to its exit code: what it finds and says, and what it refuses."""

import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kvstage_cpp import CMAKE, INCLUDE, SOURCE
from kvstage_cpp.build import WARNINGS
from kvstage_cpp.command import main
from kvstage_cpp.errors import CppError
from kvstage_cpp.pytest_plugin import CudaBuild
from kvstage_proofs.commands.main import main as kvstage
from tests.support.cpp_cases import STANDARD, Cases, sanitized
from tests.support.paths import ROOT

PROGRAMS = ROOT / "tests" / "cpp" / "programs"


def program(cuda_build: CudaBuild, name: str, sanitizer: str = "") -> str:
    return str(cuda_build([PROGRAMS / f"{name}.cpp"], sanitized(STANDARD, sanitizer), *WARNINGS))


def test_where_the_files_are(capsys: pytest.CaptureFixture[str]) -> None:
    for option, path in (("--include-dir", INCLUDE), ("--source", SOURCE), ("--cmake-dir", CMAKE)):
        assert kvstage(["cpp", option]) == 0
        assert capsys.readouterr().out == f"{path}\n"
        assert path.exists()


def test_a_race_is_told_with_both_lines_and_a_replay_that_shows_it(cases: Cases, capsys: pytest.CaptureFixture[str]) -> None:
    test = cases(sanitized(STANDARD, "thread"))
    assert kvstage(["cpp", "run", "--schedules", "late,issue-order", "--", test, "hoisted", "wrong"]) == 1
    told = capsys.readouterr().out
    assert re.search(r"^RACE     the host reads what stream 1 may still write: a wait is missing$", told, re.MULTILINE)
    assert re.search(r"^    first:  eight.cpp:\d+: cudaMemcpyAsync\(stage.rows, ", told, re.MULTILINE)
    assert re.search(r"^    second: eight.cpp:\d+: memcpy\(&out\[", told, re.MULTILINE)
    assert re.search(r"^    memory: 64 bytes, from cases.hpp:\d+: .*cudaMallocHost", told, re.MULTILINE)
    assert "      cudaStreamSynchronize of stream 1\n" in told
    assert "under 2 of 2 schedules; replay: kvstage cpp run --schedules late --" in told
    last = told.splitlines()[-1]
    assert re.match(r"2 findings: 2 schedules, 9 operations \(9 copies, 1024 bytes\), \d+ waits; ThreadSanitizer", last)
    replay = shlex.split(told.partition("replay: ")[2].splitlines()[0])
    assert kvstage(replay[1:]) == 1
    assert "RACE" in capsys.readouterr().out


def test_the_right_loop_is_clean(cases: Cases, capsys: pytest.CaptureFixture[str]) -> None:
    assert kvstage(["cpp", "run", "--", cases(STANDARD), "hoisted", "right"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("clean: 28 schedules, 9 operations (9 copies, 1024 bytes)")
    assert "build with -fsanitize=thread" in told


def test_the_report_as_junit(cases: Cases, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    asked = ["--schedules", "issue-order,late", "--junit-xml", str(file)]
    assert main(["run", *asked, "--", cases(STANDARD), "hoisted", "wrong"]) == 1
    suite = ET.parse(file).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed = {case.get("name"): case.find("failure") for case in suite}
    assert failed["issue-order"] is None
    assert failed["late"] is not None
    assert "wrong bytes" in (failed["late"].text or "")


def test_memory_freed_too_early_is_found_without_a_sanitizer(cases: Cases, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schedules", "late", "--", cases(STANDARD), "free_early", "wrong"]) == 1
    lines = r"^FREED .*\n    first:  eight.cpp:\d+: cudaMemcpyAsync.*\n    second: eight.cpp:\d+: cudaFreeHost"
    assert re.search(lines, capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("what", "words"), [("function", "cudaStreamSynchronize waits for stream 1"), ("nothing", "no thread is in a call")]
)
def test_a_wait_that_never_ends_is_told(cuda_build: CudaBuild, capsys: pytest.CaptureFixture[str], what: str, words: str) -> None:
    test = program(cuda_build, "waits_for_ever")
    assert main(["run", "--watchdog", "0.5", "--schedules", "issue-order", "--", test, what]) == 1
    told = capsys.readouterr().out
    assert re.search(rf"^HANGS .*{words}", told, re.MULTILINE)
    assert re.search(r"waits_for_ever.cpp:\d+: cuda", told)


def test_implicit_synchronisation_is_counted_on_if_asked_for(cases: Cases) -> None:
    asked = ["--schedules", "late", "--", cases(STANDARD), "free_early", "wrong"]
    assert main(["run", "--implicit-sync", *asked]) == 0
    assert main(["run", *asked]) == 1


@pytest.mark.parametrize(("pageable", "code"), [("blocking", 0), ("documented", 1), ("async", 1)])
def test_what_pageable_copies_wait_for_can_be_said(cases: Cases, pageable: str, code: int) -> None:
    test = cases(sanitized(STANDARD, "thread"))
    name = "h30_pageable_copy_and_a_stream_of_its_own"
    assert main(["run", "--pageable", pageable, "--schedules", "issue-order", "--", test, name, "wrong"]) == code


@pytest.mark.parametrize("how", ["per_block", "per_row"])
def test_a_run_is_a_run_of_the_scheme(cuda_build: CudaBuild, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    test, file = program(cuda_build, "read_blocks"), tmp_path / "trace.json"
    assert kvstage(["cpp", "run", "--trace", str(file), "--", test, how, "right"]) == 0
    assert kvstage(["check", str(file), "--scheme", f"{how}.read"]) == 0
    operations = {"per_block": 9, "per_row": 24}[how]
    assert f"a run of {how}.read: {operations + 1} operations in 1 call, no race" in capsys.readouterr().out
    other = {"per_block": "per_row", "per_row": "per_block"}[how]
    assert kvstage(["check", str(file), "--scheme", f"{other}.read"]) == 1


def test_a_run_without_its_wait_is_not(cuda_build: CudaBuild, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test, file = program(cuda_build, "read_blocks"), tmp_path / "trace.json"
    assert kvstage(["cpp", "run", "--trace", str(file), "--", test, "per_block", "wrong"]) == 1
    assert kvstage(["check", str(file), "--scheme", "per_block.read"]) == 1
    told = capsys.readouterr().out
    assert "the SyncStream is missing" in told
    assert "touch a common row and may overlap" in told


def test_copies_and_waits_are_counted(cuda_build: CudaBuild) -> None:
    for sanitizer in ("", "thread"):
        ran = subprocess.run([program(cuda_build, "counts", sanitizer)], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == "180224 copies, 180224 waits, 2883584 bytes\n5632 copies, 5632 waits, 2883584 bytes\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say what to do"),
        (["run", "--schedules", "sometimes", "--", "true"], "--schedules has 'sometimes'"),
        (["run", "--schedules", "choices:1.0", "--", "true"], "seeded:SEED:RUN"),
        (["run", "--", "./there_is_no_such_test"], "can't run ./there_is_no_such_test"),
        (["run", "--", "true"], "does not use kvstage's CUDA runtime"),
        (["convert", "missing.cu", "-o", "out.cpp"], "can't read missing.cu"),
    ],
)
def test_what_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CppError, match=re.escape(words)):
        main(arguments)
    assert kvstage(["cpp", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "words"),
    [("return cudaDeviceSynchronize();", "issued no operation"), ("cudaDeviceSynchronize(); _exit(0);", "ended by _exit")],
)
def test_a_program_that_issues_nothing_proves_nothing(cuda_build: CudaBuild, tmp_path: Path, body: str, words: str) -> None:
    source = tmp_path / "idle.cpp"
    source.write_text(f"#include <cuda_runtime.h>\n#include <unistd.h>\nint main() {{ {body} }}\n", encoding="utf-8")
    with pytest.raises(CppError, match=words):
        main(["run", "--", str(cuda_build([source], STANDARD))])


@pytest.mark.parametrize(("what", "code"), [("apart", 0), ("together", 1)])
def test_each_stream_has_a_stack_of_its_own(cuda_build: CudaBuild, what: str, code: int) -> None:
    test = program(cuda_build, "kernels_apart", "thread")
    assert main(["run", "--schedules", "issue-order,late", "--", test, what]) == code


@pytest.mark.extended
def test_streams_that_are_gone_take_no_room(cuda_build: CudaBuild) -> None:
    assert main(["run", "--schedules", "issue-order", "--", program(cuda_build, "kernels_apart", "thread"), "many"]) == 0
