"""What a stager leaves behind that is dropped while its work is under way: memory, kept until that work has ended.

Nothing here leads back to a stager, its hook, or its device: it is held by finalizers, which would keep them alive.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from .device import Device
from .lock import lock_of


class Work:
    """What one event covers on a stream, and the memory that it may touch until it has `ended`."""

    __slots__ = ("ended", "event", "memory", "stream")

    def __init__(self, event: Any, stream: str) -> None:
        self.event = event
        self.stream = stream
        self.memory: tuple[torch.Tensor, ...] = ()
        self.ended = False

    def end(self) -> None:
        """Lets go of the memory."""
        self.ended = True
        self.memory = ()


class LeftBehind:
    """The work of a device that no stager knows of any more. Added to by finalizers, which run in the midst of anything."""

    def __init__(self) -> None:
        self._works: deque[Work] = deque()
        self._unmarked: deque[tuple[tuple[str, ...], tuple[torch.Tensor, ...]]] = deque()
        self._failed: list[Work] = []

    def add(self, works: Iterable[Work], streams: Iterable[str], memory: Iterable[torch.Tensor]) -> None:
        """Takes over a stager's works, and memory that work without a mark on some streams may touch.

        No event is asked here whether work has ended: a query that says yes is a wait.
        """
        self._works.extend(work for work in works if not work.ended)
        if kept := tuple(memory):
            self._unmarked.append((tuple(streams), kept))

    def let_go(self, device: Device[Any, Any]) -> None:
        """Lets go of what has ended. Under the device's lock. Raises, once, what went wrong in work that was left."""
        if device.closed:  # which has finished its work
            self.clear()
            return
        while self._unmarked:
            streams, memory = self._unmarked[0]
            for stream in streams:
                self._works.append(_marked(device, stream, memory))
            self._unmarked.popleft()
        for _ in range(len(self._works)):
            work = self._works.popleft()
            try:
                ended = work.ended or device.query(work.event)
            except Exception:
                self._failed.append(work)  # what of it is still under way, its stream alone knows
                raise
            except BaseException:
                self._works.append(work)
                raise
            if ended:
                work.end()
            else:
                self._works.append(work)

    def clear(self) -> None:
        """The device has finished its work."""
        for kept in (self._works, self._unmarked, self._failed):
            kept.clear()


def left_behind(device: Device[Any, Any]) -> LeftBehind:
    """What was left behind on a device: one for all devices of one lock, for as long as one of them lives."""
    return _LEFT.setdefault(lock_of(device), LeftBehind())


def _marked(device: Device[Any, Any], stream: str, memory: tuple[torch.Tensor, ...]) -> Work:
    work = Work(device.event(), stream)
    device.record(work.event, stream)
    work.memory = memory
    return work


_LEFT: "WeakKeyDictionary[Any, LeftBehind]" = WeakKeyDictionary()
