"""What a call has left under way: asked and waited for by its transfer, or by a later call."""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, TypeVar

import torch

from ..devices.device import Device
from ..devices.fork_check import check_process
from ..devices.left_behind import Work
from ..devices.lock import lock_of
from .failures import asking, watched

R = TypeVar("R")
LONGEST_NAP = 0.001
"""Seconds between two looks at an event, if a wait has a timeout: no device waits for an event with one."""


class Pending:
    """What one event covers: the work of one call. Keeps its memory alive until it has ended.

    The event is recorded by `mark`, right after the call's work, where the schemes have their last wait. So a wait for
    it covers what that wait covers (A5 in `kvstage_model.ordering.axioms`, against A4). `waits` counts those that ended it.

    `error` is what went wrong in it, once a wait or a query has raised it: from then on all of them raise it, whatever
    the device says. What interrupts a wait, such as KeyboardInterrupt, says nothing of the work.
    """

    def __init__(self, device: Device[Any, Any], stream: str) -> None:
        self.stream = stream
        self.error: Exception | None = None
        self.waits = 0
        self.work = Work(device.event(), stream)
        self._device = device
        self._free = False
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._at_end: deque[Callable[[], None]] = deque()
        self._once_free: deque[Callable[[], None]] = deque()

    def mark(self, *memory: torch.Tensor) -> None:
        """Records the event; these tensors are kept until what it marks has ended."""
        self.work.memory = memory
        watched(self._device, self)
        self._device.record(self.work.event, self.stream)

    @property
    def ended(self) -> bool:
        """Whether the work is known to have ended, and well."""
        return self.work.ended

    def at_end(self, do: Callable[[], None]) -> None:
        """Does something once the work has ended well, in the order of the calls; now, if it has."""
        with self._lock:
            if not self.ended:
                self._at_end.append(do)
                return
        do()

    def once_free(self, do: Callable[[], None]) -> None:
        """Gives memory back once the work touches it no more: after its end, also if it failed; now, if that is over."""
        with self._lock:
            if not self._free:
                self._once_free.append(do)
                return
        do()

    def query(self) -> bool:
        """Whether the work has ended. Never blocks. Raises what went wrong in it."""
        if self.ended:
            self._tell()
        else:
            self.check()
            if self._asked(self._device.query):
                self._end(0)
        return self.ended

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the work has ended. Raises TimeoutError after `timeout` seconds, if it is given."""
        if self.ended:
            self._tell()
            return
        if self.error is not None and timeout is None:
            self._wait_for_the_rest()
        self.check()
        if timeout is None:
            self._asked(self._device.wait)
        else:
            self._poll(timeout)
        self._end(1)

    def wait_stream(self, stream: object) -> None:
        """What the caller puts on a stream from now on begins after the work."""
        if not self.ended:
            self.check()
            with lock_of(self._device):
                self._device.order_before(self.work.event, stream)

    def precede(self, stream: str) -> None:
        """What the device's stream of that name is given from now on begins after the work. The host goes on."""
        if not self.ended and stream != self.stream:  # which is in order
            self._device.order_after(stream, self.work.event)

    def fail(self, error: Exception) -> None:
        """The work has failed, or may have, as far as can be told from now on."""
        if not self.ended and self.error is None:
            self.error = error

    def check(self) -> None:
        """As `check_error`; and raises ForkedError in a child of the process that issued the work."""
        check_process(self._process)
        self.check_error()

    def check_error(self) -> None:
        """Raises what went wrong in the work, if that is known."""
        if self.error is not None:
            raise self.error

    def forget(self) -> tuple[torch.Tensor, ...]:
        """It will not be learned how the work ended: hands over the memory that it may still touch."""
        memory, self.work.memory = self.work.memory, ()
        return memory

    def free(self) -> None:
        """The work touches its memory no more, whether it ended well or not."""
        with self._lock:
            self._free = True
        self.forget()
        _do_all(self._once_free)

    def _wait_for_the_rest(self) -> None:
        """Of work that has failed: what the device still does of it comes to its end, too."""
        check_process(self._process)
        with suppress(Exception):  # the first error is the one to tell
            asking(self._device, self._device.wait, self.work.event)

    def _poll(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._asked(self._device.query):
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError(f"the rows have not arrived within {timeout} seconds, and are still on their way: wait again")
            sleep(min(left, LONGEST_NAP))

    def _asked(self, ask: Callable[[Any], R]) -> R:
        try:
            return asking(self._device, ask, self.work.event)
        except Exception as error:
            self.fail(error)
            raise

    def _end(self, waits: int) -> None:
        with self._lock:
            if not self.ended:
                self.waits = waits
                self._free = True
                self.work.end()
        self._tell()

    def _tell(self) -> None:
        """Memory goes back whatever a hook raises; what an interrupt has kept from being done is done by the next look."""
        try:
            _do_all(self._at_end)
        finally:
            _do_all(self._once_free)


def _do_all(due: deque[Callable[[], None]]) -> None:
    """Each of them once, whatever the others raise. Raises the first error."""
    while due:
        try:
            due.popleft()()
        except BaseException:
            _do_all(due)
            raise
