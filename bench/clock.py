"""A device that notes how long the host was kept waiting, and is otherwise the one that it wraps."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

from kvstage import Device


class Clock:
    """Seconds that the host has spent in the device's waits since the clock was made."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, wait: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same wait, on this clock: some 0.1 us longer."""

        def timed(what: Any) -> None:
            began = perf_counter()
            wait(what)
            self.seconds += perf_counter() - began

        return timed


def clocked(device: Device[Any, Any], clock: Clock) -> Device[Any, Any]:
    """The device, whose blocking waits run on the clock. Everything else is the device's own bound method, at no cost."""
    names = [name for name in dir(device) if not name.startswith("_")]
    own = {name: getattr(device, name) for name in names if callable(getattr(device, name))}
    own |= {"synchronize": clock.timed(device.synchronize), "wait": clock.timed(device.wait)}
    wrapped = type("ClockedDevice", (), {"closed": property(lambda self: device.closed)})()
    for name, method in own.items():
        setattr(wrapped, name, method)
    return cast(Device[Any, Any], wrapped)
