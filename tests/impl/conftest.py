"""One device for the tests that don't close, hold or break it, a cache of its own for the OpenCL driver, and a watch that no
run of the library drifts from its scheme.
"""

from collections.abc import Iterator

import pytest
from drift import Watch, watching

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


@pytest.fixture(autouse=True)
def watch() -> Iterator[Watch]:
    """Every call of the library in every test here is recorded, and compared with the scheme that it was to run."""
    with watching() as watch:
        yield watch
    assert not watch.drifts, "\n".join(watch.drifts)
