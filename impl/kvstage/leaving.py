"""What a stager leaves behind that is dropped while its work is under way: memory, which the device keeps from then on."""

import weakref
from collections import deque
from functools import partial
from typing import Any

import torch

from .device import Device
from .pending import Pending


def leave_to_device(device: Device[Any, Any], under_way: deque[Pending], in_doubt: list[torch.Tensor]) -> None:
    """Keeps what copies may still touch until their transfer is waited for, or else as long as the device lives.

    Nobody waits or asks here: this runs wherever Python lets go of the stager, and a query that says yes is a wait.
    """
    kept = [tuple(in_doubt), *(pending.forget() for pending in under_way)]
    if not any(kept):
        return
    weakref.finalize(device, kept.clear).atexit = False
    for number, pending in enumerate(under_way, 1):
        pending.at_end(partial(kept.__setitem__, number, ()))
