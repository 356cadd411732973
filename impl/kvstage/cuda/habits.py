"""What drivers and allocators may do though no document promises it: a run may count on it by name, to see what hides a bug."""

from collections.abc import Hashable, Iterable
from typing import Protocol

TO_DEVICE, TO_HOST = "copy_ host to device", "copy_ device to host"

HABITS = {
    "one-copy-engine": "copies in one direction run in the order in which they were issued, whatever their streams",
    "memory-is-not-reused": "the allocator never hands out what was freed while the code runs",
}
"""What a driver or an allocator may do though no document promises it, by the name under which a run may count on it."""


class Streams(Protocol):
    """What orders streams."""

    def record(self, event: Hashable, stream: str) -> None:
        """Marks what a stream was given so far."""
        ...  # pragma: no cover

    def wait_event(self, stream: str, event: Hashable) -> None:
        """A stream's later work waits."""
        ...  # pragma: no cover


def habits_of(names: Iterable[str]) -> frozenset[str]:
    """The habits of these names. Raises ValueError for a name that is none."""
    chosen = frozenset(names)
    if unknown := chosen - set(HABITS):
        raise ValueError(f"no habit of drivers is called {', '.join(sorted(unknown))}: there are {', '.join(HABITS)}")
    return chosen


class CopyEngine:
    """One engine for each direction: a copy comes after the last one that was issued, on whatever stream."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._last: dict[str, str] = {}
        self._orders = 0

    def order(self, what: str, stream: str) -> None:
        """Work is about to be issued on a stream."""
        if what not in (TO_DEVICE, TO_HOST):
            return
        last = self._last.get(what, stream)
        if last != stream:
            event = ("copy engine", self._orders)
            self._orders += 1
            self._streams.record(event, last)
            self._streams.wait_event(stream, event)
        self._last[what] = stream
