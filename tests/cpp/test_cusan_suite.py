"""The verdicts of CuSan's own tests (github.com/tudasc/cusan): KVSTAGE_CUSAN is the folder of a checkout, or these are skipped.

Each test is a CUDA program that must race, and, built with another macro, must not. Those that need MPI are left out.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvstage_cpp.convert import converted
from kvstage_cpp.judge import judge
from kvstage_cpp.program import Settings
from kvstage_cpp.pytest_plugin import CudaBuild
from tests.support.cpp_cases import STANDARD, sanitized

FOLDER = Path(os.environ.get("KVSTAGE_CUSAN", "")) / "test" / "runtime"
RUNS = re.compile(r"^// RUN: %wrapper-\w+ (.*?)-o %cusan_test_dir/(\S+)\n// RUN: .*?%filecheck %s(.*)$", re.MULTILINE)
PREFIX = re.compile(r"--check-prefix[= ](\S+)")
FIRST_LINES = "#include <unistd.h>\n"
"""What other headers bring there."""


@dataclass(frozen=True)
class Expected:
    """A build of one of the programs, and whether it must race."""

    file: Path
    macros: tuple[str, ...]
    races: bool

    def __str__(self) -> str:
        return "-".join([self.file.stem, *(macro.removeprefix("-D") for macro in self.macros)])


def expected() -> list[Expected]:
    found = []
    for file in sorted(FOLDER.glob("*.c")) if "KVSTAGE_CUSAN" in os.environ else []:
        text = file.read_text(encoding="utf-8")
        if "mpi.h" in text or "TSan_External" in text:
            continue
        for arguments, _, checked in RUNS.findall(text):
            prefix = PREFIX.search(checked)
            lines = re.findall(rf"^// {prefix[1] if prefix else 'CHECK'}(-DAG|-NOT)?: data race", text, re.MULTILINE)
            found += [Expected(file, tuple(re.findall(r"-D\w+", arguments)), line != "-NOT") for line in lines[:1]]
    return found


ALL = expected()


@pytest.mark.extended
@pytest.mark.skipif(not ALL, reason="KVSTAGE_CUSAN does not name a checkout of CuSan")
@pytest.mark.parametrize("each", ALL, ids=str)
def test_the_verdict_is_the_same(cuda_build: CudaBuild, each: Expected, tmp_path: Path) -> None:
    source = tmp_path / f"{each.file.stem}.cpp"
    source.write_text(FIRST_LINES + converted(each.file.read_text(encoding="utf-8"), str(each.file)), encoding="utf-8")
    program = cuda_build([source], sanitized(STANDARD, "thread"), "-fpermissive", "-w", *each.macros)
    settings = Settings(implicit_sync="implicit_sync" in each.file.stem and "alloc" in each.file.stem)
    kinds = {finding.kind for finding in judge([str(program)], ("issue-order", "late"), settings).findings}
    assert ("RACE" in kinds) == each.races


@pytest.mark.extended
@pytest.mark.skipif(not ALL, reason="KVSTAGE_CUSAN does not name a checkout of CuSan")
def test_there_are_as_many_as_were_counted() -> None:
    assert len(ALL) == 41
    assert sum(each.races for each in ALL) == 20
