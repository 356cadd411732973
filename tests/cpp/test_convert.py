"""Kernel launches as C++: what is rewritten, what stays as it is, and a CUDA file that then compiles and runs."""

from pathlib import Path

import pytest

from kvstage_cpp.command import main
from kvstage_cpp.convert import converted
from kvstage_cpp.errors import CppError
from kvstage_cpp.program import Settings, run
from kvstage_cpp.pytest_plugin import CudaBuild
from tests.support.cpp_cases import STANDARD

QUOTED = 'puts("k<<<1, 2>>>(x)"); // k<<<1, 2>>>(x)\n/* k<<<1,2>>>() */'


@pytest.mark.parametrize(
    ("cuda", "cpp"),
    [
        ("k<<<1, 2>>>(x);", "kvstage_launch(1, 2)(k, x);"),
        ("k<<<g(1, a<b>(2)), 2, 0, s>>>();", "kvstage_launch(g(1, a<b>(2)), 2, 0, s)(k);"),
        ("ns::k<T, 4><<<1, 2>>>( x )", "kvstage_launch(1, 2)(ns::k<T, 4>,  x )"),
        ("if (n) k <<<1, 2>>> ( /* none */ );", "if (n) kvstage_launch(1, 2) (k /* none */ );"),
        ("return k<<<1, 2>>>(x);", "return kvstage_launch(1, 2)(k, x);"),
        ("k<<<1,\n 2>>>(x,\n y);", "kvstage_launch(1,\n 2)(k, x,\n y);"),
        ("x = a << 3; y = b >> 2; v<v<v<int>>> z;", "x = a << 3; y = b >> 2; v<v<v<int>>> z;"),
        (QUOTED, QUOTED),
        ('R"(k<<<1, 2>>>(x))" + 1\'000', 'R"(k<<<1, 2>>>(x))" + 1\'000'),
        ("a<<<1, 1>>>(p); b<<<2, 2>>>(q);", "kvstage_launch(1, 1)(a, p); kvstage_launch(2, 2)(b, q);"),
    ],
)
def test_launches_and_nothing_else_are_rewritten(cuda: str, cpp: str) -> None:
    assert converted(cuda, "file.cu") == f'#include <cuda_runtime.h>\n#line 1 "file.cu"\n{cpp}'


@pytest.mark.parametrize(
    ("cuda", "words"),
    [
        ("int i;\nk<<<1, 2", "file.cu:2: <<< has no >>>"),
        ("\n\nk<<<1, 2>>>;", "file.cu:3: there are no arguments after >>>"),
        ("(a)<<<1, 2>>>(x);", "file.cu:1: there is no kernel before <<<"),
    ],
)
def test_what_is_no_launch_is_told_with_its_line(cuda: str, words: str) -> None:
    with pytest.raises(CppError, match=words):
        converted(cuda, "file.cu")


def test_a_converted_file_compiles_and_runs(cuda_build: CudaBuild, tmp_path: Path) -> None:
    cuda = tmp_path / "fill.cu"
    cuda.write_text(
        "#include <cuda_runtime.h>\n"
        "template <int N> __global__ void fill(int* cells, int value) { cells[blockIdx.x * N + threadIdx.x] = value + N; }\n"
        "int main() {\n"
        "    int *cells, host[8];\n"
        "    cudaMalloc(&cells, sizeof host);\n"
        "    fill<4><<<2, 4>>>(cells, 3);\n"
        "    cudaMemcpy(host, cells, sizeof host, cudaMemcpyDeviceToHost);\n"
        "    for (int cell : host)\n"
        "        if (cell != 7) return 1;\n"
        "    return 0;\n"
        "}\n",
        encoding="utf-8",
    )
    assert main(["convert", str(cuda), "-o", str(tmp_path / "fill.cpp")]) == 0
    done = run([str(cuda_build([tmp_path / "fill.cpp"], STANDARD))], "late", Settings())
    assert (done.exit_code, done.log.counts.launches) == (0, 1)
