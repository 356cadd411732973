"""The devices that staging is measured on: those that this machine has."""

from collections.abc import Callable
from typing import Any

from kvstage import Device, ThreadDevice


def available() -> dict[str, Callable[[], Device[Any, Any]]]:
    """What makes each device, by its name; ThreadDevice, which is everywhere, first."""
    return {"ThreadDevice": ThreadDevice}
