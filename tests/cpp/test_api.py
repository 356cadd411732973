"""What the runtime's API does: programs of checks, with and without sanitizers, each under the schedule that it is made for."""

import subprocess
from pathlib import Path

import pytest

from kvstage_cpp import SOURCE
from kvstage_cpp.build import WARNINGS, Toolchain
from kvstage_cpp.errors import CppError
from kvstage_cpp.program import Settings, run
from kvstage_cpp.pytest_plugin import CudaBuild
from tests.support.cpp_cases import OTHERS, STANDARD, sanitized
from tests.support.paths import ROOT

API = ROOT / "tests" / "cpp" / "api"
PROGRAMS = {"api": "issue-order", "order": "late", "graphs": "late"}


@pytest.mark.parametrize("sanitizer", ["", "thread", "address"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_check_holds(cuda_build: CudaBuild, name: str, sanitizer: str) -> None:
    program = cuda_build([API / f"{name}.cpp"], sanitized(STANDARD, sanitizer), *WARNINGS)
    done = run([str(program)], PROGRAMS[name], Settings())
    assert (done.exit_code, done.output) == (0, "")
    assert done.log.linked
    looks_without_a_wait = sanitizer == "thread" and name != "api"  # to see that nothing has happened yet
    assert bool(done.reports) == looks_without_a_wait


@pytest.mark.parametrize("name", ["order", "graphs"])
def test_the_checks_of_what_has_not_happened_fail_in_issue_order(cuda_build: CudaBuild, name: str) -> None:
    program = cuda_build([API / f"{name}.cpp"], STANDARD, *WARNINGS)
    done = run([str(program)], "issue-order", Settings())
    assert done.exit_code == 1
    assert done.output.count(f"{name}.cpp:") > 2


@pytest.mark.extended
@pytest.mark.parametrize("toolchain", OTHERS, ids=lambda each: f"{each.compiler}-{each.standard}")
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_check_holds_by_another_compiler(cuda_build: CudaBuild, name: str, toolchain: Toolchain) -> None:
    done = run([str(cuda_build([API / f"{name}.cpp"], toolchain, *WARNINGS))], PROGRAMS[name], Settings())
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize("missing", ["cudaIpcGetMemHandle(&handle, nullptr)", "__syncthreads()", "cudaGraphCreate(&graph, 0)"])
def test_what_is_not_there_fails_when_it_is_linked(cuda_build: CudaBuild, missing: str, tmp_path: Path) -> None:
    source = tmp_path / "missing.cpp"
    unused = "cudaIpcMemHandle_t handle; cudaGraph_t graph; (void)handle, (void)graph;"
    source.write_text(f"#include <cuda_runtime.h>\nint main() {{ {unused} {missing}; }}\n", encoding="utf-8")
    with pytest.raises(CppError, match=f"undefined reference to `{missing.partition('(')[0]}"):
        cuda_build([source], STANDARD)


def test_the_names_of_hip_are_those_of_cuda(cuda_build: CudaBuild, tmp_path: Path) -> None:
    source = tmp_path / "hip.cpp"
    source.write_text(
        "#include <hip/hip_runtime.h>\n"
        "__global__ void set(int* cell, int value) { *cell = value; }\n"
        "int main() {\n"
        "    int *cell, host = 0;\n"
        "    hipStream_t stream;\n"
        "    if (hipMalloc(&cell, sizeof host) != hipSuccess || hipStreamCreate(&stream)) return 1;\n"
        "    hipLaunchKernelGGL(set, dim3(1), dim3(1), 0, stream, cell, 5);\n"
        "    hipMemcpyAsync(&host, cell, sizeof host, hipMemcpyDeviceToHost, stream);\n"
        "    return hipStreamSynchronize(stream) != hipSuccess || host != 5;\n"
        "}\n",
        encoding="utf-8",
    )
    done = run([str(cuda_build([source], STANDARD, *WARNINGS))], "late", Settings())
    assert (done.exit_code, done.log.counts.operations) == (0, 2)


@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
def test_the_runtime_itself_is_refused_with_a_sanitizer(compiler: str) -> None:
    try:
        built = subprocess.run(
            [compiler, "-fsanitize=thread", "-fsyntax-only", str(SOURCE)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip(f"{compiler} is not installed")
    assert built.returncode
    assert "without -fsanitize" in built.stderr
