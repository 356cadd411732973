"""One device for the tests that don't close, hold or break it, and a watch that no run of the library drifts from its scheme."""

from collections.abc import Iterator

import pytest
from drift import Watch, watching

from kvstage import ThreadDevice


@pytest.fixture(scope="session")
def device() -> Iterator[ThreadDevice]:
    with ThreadDevice() as device:
        yield device


@pytest.fixture(autouse=True)
def watch() -> Iterator[Watch]:
    """Every call of the library in every test here is recorded, and compared with the scheme that it was to run."""
    with watching() as watch:
        yield watch
    assert not watch.drifts, "\n".join(watch.drifts)
