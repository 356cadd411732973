"""A device whose n-th call fails, before it does anything or behind it."""

from collections.abc import Callable
from typing import Any

CALLS = (
    *("view", "allocate", "copy", "gather", "scatter", "host_copy", "synchronize"),
    *("event", "record", "wait_event", "order_after", "order_before", "wait", "query"),
)


class InjectedError(Exception):
    """What the device raises."""


class Faulty:
    """Does what the device does that it is made of, but for call number `at`: that raises, with its work `done` or not.

    `seen` counts the calls; from `mend()` on all is well.
    """

    def __init__(self, device: Any, at: int, done: bool, error: type[BaseException] = InjectedError) -> None:
        self.device = device
        self.seen: list[str] = []
        self._at, self._done, self._error = at, done, error
        for name in CALLS:
            setattr(self, name, self._call(name, getattr(device, name)))

    def mend(self) -> None:
        self._at = -1

    def _call(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            number = len(self.seen)
            self.seen.append(name)
            if number != self._at:
                return do(*arguments)
            if self._done:
                do(*arguments)
            raise self._error(f"call {number}, {name}")

        return call

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)
