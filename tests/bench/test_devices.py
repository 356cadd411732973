"""Which devices are measured on: those that are here; of the others the reason is kept."""

import pytest

from bench import devices
from bench.devices import available
from kvstage import OpenCLMissingError, ThreadDevice


def test_a_device_that_is_missing_is_missing_for_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise OpenCLMissingError("there is no OpenCL driver: install one")

    found = available()
    assert next(iter(found)) == "ThreadDevice"
    assert found["ThreadDevice"] is ThreadDevice
    monkeypatch.setattr(devices, "OpenCLDevice", nowhere)
    assert available()["OpenCLDevice"] == "there is no OpenCL driver: install one"
