"""The devices that staging is measured on: those that this machine has."""

from collections.abc import Callable
from typing import Any

import torch

from kvstage import AcceleratorDevice, Device, OpenCLDevice, OpenCLMissingError, ThreadDevice


def available() -> dict[str, Callable[[], Device[Any, Any]] | str]:
    """What makes each device, by its name, ThreadDevice, which is everywhere, first; or why it is not here."""
    accelerator = AcceleratorDevice if torch.accelerator.is_available() else "torch finds no accelerator"
    return {"ThreadDevice": ThreadDevice, "OpenCLDevice": _opencl(), "AcceleratorDevice": accelerator}


def _opencl() -> Callable[[], Device[Any, Any]] | str:
    try:
        OpenCLDevice().close()
    except OpenCLMissingError as error:
        return str(error)
    return OpenCLDevice
