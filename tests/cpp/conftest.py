"""What the tests of the C++ runtime share: their cases as a program, built once for each toolchain."""

from collections.abc import Callable

import pytest

from kvstage_cpp.build import WARNINGS, Toolchain
from kvstage_cpp.pytest_plugin import CudaBuild, cuda_build
from tests.support.cpp_cases import CASES

__all__ = ["cuda_build"]


@pytest.fixture(scope="session")
def cases(cuda_build: CudaBuild) -> Callable[[Toolchain], str]:
    """A function that gives the path of the program with all cases: `PROGRAM NAME right|wrong`."""
    return lambda toolchain: str(cuda_build(CASES, toolchain, *WARNINGS))
