"""Which devices are measured on: those that are here; of the others the reason is kept."""

import pytest
import torch

from bench import devices
from bench.devices import available
from kvstage import AcceleratorDevice, OpenCLMissingError, ThreadDevice


def test_a_device_that_is_missing_is_missing_for_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise OpenCLMissingError("there is no OpenCL driver: install one")

    found = available()
    assert next(iter(found)) == "ThreadDevice"
    assert found["ThreadDevice"] is ThreadDevice
    monkeypatch.setattr(devices, "OpenCLDevice", nowhere)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    missing = {"OpenCLDevice": "there is no OpenCL driver: install one", "AcceleratorDevice": "torch finds no accelerator"}
    assert available() == {"ThreadDevice": ThreadDevice} | missing
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert available()["AcceleratorDevice"] is AcceleratorDevice
