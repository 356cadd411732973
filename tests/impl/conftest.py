"""One device for the tests that don't close, hold or break it."""

from collections.abc import Iterator

import pytest

from kvstage import ThreadDevice


@pytest.fixture(scope="session")
def device() -> Iterator[ThreadDevice]:
    with ThreadDevice() as device:
        yield device
