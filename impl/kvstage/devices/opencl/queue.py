"""One stream of an `OpenCLDevice`: an in-order command queue, and what must live until its commands have ended."""

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ...errors import DeviceError
from ..timing import Span
from .driver import Driver

LOOKS = 200
"""Looks at an event, one after the other, before a wait begins to sleep between them: a small copy is over by then."""
SHORTEST_NAP, LONGEST_NAP = 20e-6, 1e-3
"""Seconds between two looks of a wait that sleeps: each nap is twice as long as the one before."""

_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class UserEventGate:
    """A user event: the command that waits for it begins when it is set."""

    def __init__(self, driver: Driver) -> None:
        self.event = driver.cl.UserEvent(driver.context)
        self._complete = driver.cl.command_execution_status.COMPLETE

    def set(self) -> None:
        """Lets the command go."""
        self.event.set_status(self._complete)


class Mark:
    """A command of a stream: when it has ended, so has all that was put on the stream before. Matches `held_work.Marked`.

    A mark that `ends` takes over what failed before it, as `failed`: commands after a failure may well succeed.
    """

    __slots__ = ("ends", "event", "failed", "number", "queue", "stream")

    def __init__(self, queue: "Queue", number: int, event: Any, ends: bool) -> None:
        self.queue = queue
        self.stream = queue.name
        self.number = number
        self.event = event
        self.ends = ends
        self.failed = 0

    @property
    def status(self) -> int:
        """OpenCL's: above 0 while it is under way, 0 when it has ended, below 0 if it failed."""
        status: int = self.event.command_execution_status
        return status

    def block(self) -> None:
        """Returns when the command has ended. The driver's own wait can't be interrupted, so this one looks again and again."""
        for _ in range(LOOKS):
            if self.status <= 0:
                return
            _give_way()
        nap = SHORTEST_NAP
        while self.status > 0:
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)


class Queue:
    """A command queue. Events and operands of its commands are kept until they have ended.

    A binding's event may wait in its destructor, for work that has not been let go of yet; so no event is dropped early.
    `failed` is the first failure since one was last raised, `untold` the first since a mark last took one over.
    """

    def __init__(self, name: str, commands: Any) -> None:
        self.name = name
        self.commands = commands
        self.last: Mark | None = None
        self.failed = self.untold = 0
        self._kept: deque[tuple[Mark, tuple[object, ...], Span | None]] = deque()

    def put(self, number: int, event: Any, operands: tuple[object, ...], span: Span | None, ends: bool = False) -> Mark:
        """Notes a command that was enqueued, and hands it to the device."""
        mark = self.last = Mark(self, number, event, ends)
        self._kept.append((mark, operands, span))
        self.commands.flush()
        return mark

    def forget(self) -> None:
        """Drops what belongs to commands that have ended, and notes their times and failures. Not for two threads at once."""
        while self._kept and (status := self._kept[0][0].status) <= 0:
            mark, _, span = self._kept.popleft()
            self.failed = self.failed or status
            self.untold = self.untold or status
            if mark.ends:
                mark.failed, self.untold = self.untold, 0
            if span is not None and status == 0:
                span.begin, span.end = mark.event.profile.start, mark.event.profile.end

    def check(self, mark: Mark) -> None:
        """Raises DeviceError if a mark failed that `forget` has seen, or a command between it and the mark before."""
        if status := min(mark.status, 0) or mark.failed:
            self._raise(status)

    def check_all(self) -> None:
        """Raises DeviceError if a command has failed, and no caller was told of a failure since."""
        if self.failed:
            self._raise(self.failed)

    def _raise(self, status: int) -> None:
        self.failed = 0
        raise DeviceError(f"a command of stream {self.name!r} failed, or one that it waited for: OpenCL status {status}")
