"""The runtime with an edge taken out, or one too many: a right loop then races, or a wrong one doesn't.

A mutant is a copy of the runtime in which one text is another. The loops are those of the other tests.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvstage_cpp import ROOT as PACKAGE
from kvstage_cpp.judge import judge
from kvstage_cpp.pytest_plugin import CudaBuild
from tests.support.cpp_cases import CASES, STANDARD, sanitized
from tests.support.paths import ROOT

TSAN = sanitized(STANDARD, "thread")
KERNELS = (ROOT / "tests" / "cpp" / "programs" / "kernels_apart.cpp",)
ORDER = (ROOT / "tests" / "cpp" / "api" / "order.cpp",)


@dataclass(frozen=True)
class Mutant:
    """A text of a file of the runtime, and what it becomes; and what a program, under a schedule, then is no longer."""

    file: str
    old: str
    new: str
    arguments: tuple[str, ...]
    sources: tuple[Path, ...] = tuple(CASES)
    schedule: str = "issue-order"


MUTANTS = {
    "an event's record releases nothing": Mutant(
        "device.hpp", "if (operation.mark) operation.mark->edge.release();", "", ("double_buffer", "right")
    ),
    "the end of an operation releases nothing": Mutant("device.hpp", "operation.stream->edge.release();", "", ("hoisted", "right")),
    "an operation begins before its issue": Mutant("device.hpp", "issued.acquire();", "", ("double_buffer", "right")),
    "a stream does not wait for an event": Mutant(
        "device.hpp", "for (auto& point : operation.after) acquire(point);", "", ("handover", "right")
    ),
    "the host does not wait": Mutant("device.hpp", "    acquire(point);\n    progress();", "    progress();", ("hoisted", "right")),
    "the host waits for each operation": Mutant(
        "device.hpp",
        "return advance(operation, 2, stream.issuing);",
        "advance(operation, 2, stream.issuing);\n        return stream.edge.acquire();",
        ("hoisted", "wrong"),
    ),
    "an event is all of its stream": Mutant(
        "operations.hpp", "point.mark ? point.mark->edge.acquire() : point.stream", "point.stream", ("double_buffer", "wrong")
    ),
    "streams share the stacks of threads": Mutant(
        "sanitizers.hpp", "if (own_stack) return stack_.run(fiber_, as_called);", "(void)own_stack;", ("apart",), KERNELS
    ),
    "the default stream is in order with no other": Mutant(
        "device.hpp", "if (other.issued <= seen) return;", "return;", (), ORDER, "late"
    ),
    "a held operation is not held": Mutant("schedule.hpp", "return number < 0;", "return true;", (), ORDER, "late"),
}


def mutated(mutant: Mutant, folder: Path) -> list[str]:
    """The command of a program that is linked with a mutant of the runtime."""
    copy = folder / "kvstage_cpp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "runtime" / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    program = folder / "program"
    runtime = folder / "runtime.o"
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-c", str(copy / "kvstage_cuda.cpp"), "-o", str(runtime)], check=True)
    subprocess.run(
        ["g++", *TSAN.flags, "-I", str(copy / "include"), *map(str, mutant.sources), str(runtime), "-o", str(program)], check=True
    )
    return [str(program), *mutant.arguments]


@pytest.mark.extended
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_runtime_is_seen(cuda_build: CudaBuild, name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    own = [str(cuda_build(mutant.sources, TSAN)), *mutant.arguments]
    kinds = [
        {finding.kind for finding in judge(command, (mutant.schedule,)).findings} for command in (own, mutated(mutant, tmp_path))
    ]
    what = "FAILS" if mutant.sources == ORDER else "RACE"
    assert (what in kinds[0]) != (what in kinds[1])
