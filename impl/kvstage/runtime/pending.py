"""What a stager leaves behind that is dropped while its work is under way: memory, which the device keeps from then on."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Any, TypeVar

import torch

from ..devices.device import Device
from ..devices.fork_check import check_process
from ..devices.lock import lock_of

R = TypeVar("R")
LONGEST_NAP = 0.001
"""Seconds between two looks at an event, where a wait has a timeout: no device waits for an event with one."""


class Pending:
    """What one event covers: the work of one call. Keeps its memory alive until it has ended.

    The event is recorded by `mark`, right behind the call's work, where the schemes have their last wait. So a wait for
    it covers what that wait covers (A5 in `kvstage_model.axioms`, against A4). `waits` counts those that ended it.
    `failed` is whether a wait or a query has raised what went wrong, so that somebody knows.
    """

    def __init__(self, device: Device[Any, Any], stream: str) -> None:
        self.stream = stream
        self.ended = False
        self.failed = False
        self.waits = 0
        self._device = device
        self._event = device.event()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._memory: tuple[torch.Tensor, ...] = ()
        self._at_end: list[Callable[[], None]] = []

    def mark(self, *memory: torch.Tensor) -> None:
        """Records the event; these tensors are kept until what it marks has ended."""
        self._memory = memory
        self._device.record(self._event, self.stream)

    def at_end(self, do: Callable[[], None]) -> None:
        """Does something once the work has ended, in the order of the calls; now, where it has."""
        with self._lock:
            if not self.ended:
                self._at_end.append(do)
                return
        do()

    def query(self) -> bool:
        """Whether the work has ended. Never blocks. Raises what went wrong in it."""
        if not self.ended:
            check_process(self._process)
            if self._asked(self._device.query):
                self._end(0)
        return self.ended

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the work has ended. Raises TimeoutError after `timeout` seconds, where it is given."""
        if self.ended:
            return
        check_process(self._process)
        if timeout is None:
            self._asked(self._device.wait)
        else:
            self._poll(timeout)
        self._end(1)

    def wait_stream(self, stream: object) -> None:
        """What the caller puts on a stream of his from now on begins after the work."""
        if not self.ended:
            check_process(self._process)
            with lock_of(self._device):
                self._device.order_before(self._event, stream)

    def precede(self, stream: str) -> None:
        """What the device's stream of that name is given from now on begins after the work. The host goes on."""
        if not self.ended and stream != self.stream:  # which is in order
            self._device.order_after(stream, self._event)

    @property
    def memory(self) -> tuple[torch.Tensor, ...]:
        """What the work may still touch; nothing, once it has ended."""
        return self._memory

    def forget(self) -> tuple[torch.Tensor, ...]:
        """Nobody will learn how the work ended: hands over the memory that it may still touch."""
        memory, self._memory = self._memory, ()
        return memory

    def _poll(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._asked(self._device.query):
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError(f"the rows have not arrived within {timeout} seconds, and are still on their way: wait again")
            sleep(min(left, LONGEST_NAP))

    def _asked(self, ask: Callable[[Any], R]) -> R:
        try:
            return ask(self._event)
        except KeyboardInterrupt:  # says nothing of the work
            raise
        except BaseException:
            self.failed = True
            raise

    def _end(self, waits: int) -> None:
        with self._lock:
            if self.ended:
                return
            self.ended = True
            self.waits = waits
            self._memory = ()
            due, self._at_end = self._at_end, []
        for do in due:
            do()


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
