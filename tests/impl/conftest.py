"""One device for the tests that don't close, hold or break it, and a cache of its own for the OpenCL driver."""

from collections.abc import Iterator

import pytest

from kvstage import ThreadDevice


@pytest.fixture(scope="session")
def device() -> Iterator[ThreadDevice]:
    with ThreadDevice() as device:
        yield device


@pytest.fixture(scope="session", autouse=True)
def opencl_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A program that crashed once must not spoil later runs through the driver's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
        patch.setenv("PYOPENCL_NO_CACHE", "1")
        yield
