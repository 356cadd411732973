"""A fixture for tests in Python that build and run C++: `from kvstage_cpp.pytest_plugin import cuda_build` in a conftest.py."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from .build import Toolchain, build

CudaBuild = Callable[..., Path]


@pytest.fixture(scope="session")
def cuda_build(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> CudaBuild:
    """A function `(sources, toolchain, *flags)` that builds a program with kvstage's CUDA runtime, and gives its path.

    The same program is built once, in all processes of pytest-xdist together. Without the compiler the test is skipped.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "kvstage-cpp"
    folder.mkdir(exist_ok=True)

    def built(sources: Sequence[Path], toolchain: Toolchain, *flags: str) -> Path:
        if shutil.which(toolchain.compiler) is None:
            pytest.skip(f"{toolchain.compiler} is not installed")
        return build(sources, toolchain, folder, *flags)

    return built
