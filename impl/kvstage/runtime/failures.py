"""Errors of work that has ended badly: what they concern, if a device tells them only once.

What a device raises from a wait may be about any work that this wait covers, and the next wait may return as if nothing had
been. So all that is under way then has failed, as far as can be told; but not on a device that `keeps_errors`: there
each event that covers failed work raises it at each wait, and none else does.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..devices.device import Device
from ..devices.lock import lock_of

A = TypeVar("A")
R = TypeVar("R")


class Failing(Protocol):
    """Work under way."""

    def fail(self, error: Exception) -> None:
        """Takes the work for failed, unless it is known to have ended well."""
        ...  # pragma: no cover


_UNDER_WAY: "WeakKeyDictionary[Any, WeakValueDictionary[int, Failing]]" = WeakKeyDictionary()
"""By the lock of a device, and of those around it."""


def watched(device: Device[Any, Any], work: Failing) -> None:
    """What is raised from now on may be about this work."""
    _UNDER_WAY.setdefault(lock_of(device), WeakValueDictionary())[id(work)] = work


def asking(device: Device[Any, Any], ask: Callable[[A], R], about: A) -> R:
    """A wait or a query of the device's, whose error is brought to all the work that it may be about."""
    try:
        return ask(about)
    except Exception as error:
        if not getattr(device, "keeps_errors", False):
            for work in _UNDER_WAY.get(lock_of(device), WeakValueDictionary[int, Failing]()).valuerefs():
                if (failing := work()) is not None:
                    failing.fail(error)
        raise
