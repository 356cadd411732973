"""One lock for each device: work is issued by one host thread at a time, whichever stager it is for."""

import os
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from .device import Device

_LOCKS: "WeakKeyDictionary[Device[Any, Any], Any]" = WeakKeyDictionary()
"""For the whole process, as a device may be used by stagers that know nothing of each other."""


def lock_of(device: Device[Any, Any]) -> Any:
    """The lock to hold while work is issued on a device: an RLock, since a hook that is told of an end may call a stager."""
    return _LOCKS.setdefault(device, RLock())  # which is atomic: all threads get the first that was put there


def share_lock(outer: Device[Any, Any], inner: Device[Any, Any]) -> None:
    """A device that passes its work on to another one is issued on under the lock of that one."""
    _LOCKS[outer] = lock_of(inner)


def _renew() -> None:
    """In a forked child: a lock may be held by a thread that is in the parent alone. Devices that share one still do."""
    renewed: dict[int, Any] = {}
    for device, lock in list(_LOCKS.items()):
        _LOCKS[device] = renewed.setdefault(id(lock), RLock())


if hasattr(os, "register_at_fork"):  # if there is a fork
    os.register_at_fork(after_in_child=_renew)
