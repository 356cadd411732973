"""Samples of NVIDIA's (github.com/NVIDIA/cuda-samples): KVSTAGE_CUDA_SAMPLES is the folder of a checkout, or these are skipped.

They are converted and built as they are. One of them has a macro with which the host moves data while copies are under way.
"""

import os
from pathlib import Path

import pytest

from kvstage_cpp.convert import converted
from kvstage_cpp.judge import judge
from kvstage_cpp.program import Settings
from kvstage_cpp.pytest_plugin import CudaBuild
from tests.support.cpp_cases import STANDARD, sanitized

FOLDER = Path(os.environ.get("KVSTAGE_CUDA_SAMPLES", ""))
SAMPLES = FOLDER / "Samples" / "0_Introduction"


@pytest.mark.extended
@pytest.mark.skipif("KVSTAGE_CUDA_SAMPLES" not in os.environ, reason="KVSTAGE_CUDA_SAMPLES does not name a checkout")
@pytest.mark.parametrize(
    ("sample", "macro", "races"),
    [
        ("asyncAPI", "-DAS_IT_IS", False),
        ("simpleZeroCopy", "-DAS_IT_IS", False),
        ("simpleMultiCopy", "-DAS_IT_IS", False),
        ("simpleMultiCopy", "-DSIMULATE_IO", True),
    ],
)
def test_a_sample_is_clean_or_races_as_its_text_says(
    cuda_build: CudaBuild, sample: str, macro: str, races: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SAMPLES / sample / f"{sample}.cu"
    source = tmp_path / f"{sample}.cpp"
    source.write_text(converted(file.read_text(encoding="utf-8"), str(file)), encoding="utf-8")
    program = cuda_build([source], sanitized(STANDARD, "thread"), "-fpermissive", "-w", f"-I{FOLDER / 'Common'}", macro)
    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1")  # a race in 16 MiB, word by word, takes minutes
    found = judge([str(program)], ("issue-order", "late"), Settings(watchdog=600)).findings
    assert bool(found) == races
    assert {finding.kind for finding in found} <= {"RACE"}
