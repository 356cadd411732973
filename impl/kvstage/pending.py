"""Work that a call has left to a stream, and the memory that it may still touch."""

from time import monotonic, sleep
from typing import Any

import torch

from .device import Device
from .errors import NotFinishedError

LONGEST_NAP = 0.001
"""Seconds between two looks at an event, where a wait has a timeout: no device waits for an event with one."""


class Pending:
    """What one event covers: the work of a call, or of all calls of a batch. Keeps their memory alive until it has ended.

    The event is recorded by `mark`, right behind the last call's work, where the schemes have their last wait. So a wait
    for it covers what that wait covers (A5 in `kvstage_model.axioms`, against A4).
    """

    def __init__(self, device: Device[Any, Any], stream: str) -> None:
        self._device = device
        self._stream = stream
        self._event = device.event()
        self._marked = False
        self._ended = False
        self._memory: list[torch.Tensor] = []

    def keep(self, *memory: torch.Tensor) -> None:
        """Keeps tensors until the work has ended."""
        self._memory += memory

    def mark(self) -> None:
        """Nothing more is added: records the event."""
        self._device.record(self._event, self._stream)
        self._marked = True

    def query(self) -> bool:
        """Whether the work has ended. Raises what went wrong in it."""
        if not self._ended and self._marked and self._device.query(self._event):
            self._end()
        return self._ended

    def wait(self, timeout: float | None = None) -> bool:
        """Returns when the work has ended, and whether the host had to be kept for that.

        Raises TimeoutError after `timeout` seconds, where it is given; NotFinishedError where nothing was marked yet.
        """
        if self._ended:
            return False
        if not self._marked:
            raise NotFinishedError("the batch of this call is still open: leave its `with` first, then wait")
        if timeout is None:
            self._device.wait(self._event)
        else:
            self._poll(timeout)
        self._end()
        return True

    def _poll(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._device.query(self._event):
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError(f"the rows have not arrived within {timeout} seconds, and are still on their way: wait again")
            sleep(min(left, LONGEST_NAP))

    def _end(self) -> None:
        self._ended = True
        self._memory.clear()
