"""Holding work back: what makes a missing wait show every time on a device of worker threads. For tests."""

import threading
from collections.abc import Callable
from typing import Protocol


class Marked(Protocol):
    """A place in a stream's queue: everything on `stream` whose number is below `number` is before it."""

    @property
    def stream(self) -> str:
        """The stream's name."""
        ...  # pragma: no cover

    @property
    def number(self) -> int:
        """Numbers count what was put on any stream of the device, in order."""
        ...  # pragma: no cover


class Hold:
    """Keeps chosen work back, and with it what its stream has to do behind it. Made by `ThreadDevice.hold`."""

    def __init__(self, which: Callable[[str, int], bool]) -> None:
        self._which = which
        self._seen = 0
        self._released = False
        self._held: dict[str, list[tuple[int, threading.Event | Marked]]] = {}

    def release(self) -> None:
        """Lets go of everything, and holds nothing from now on."""
        self._released = True
        held, self._held = self._held, {}
        for entries in held.values():
            for _, entry in entries:
                if isinstance(entry, threading.Event):
                    entry.set()

    def let_go(self, stream: str, number: int) -> None:
        """Lets go of what must happen before place `number` of a stream: its work, and other streams' that it waits for."""
        entries = self._held.get(stream, [])
        self._held[stream] = [entry for entry in entries if entry[0] >= number]
        for at, entry in entries:
            if at >= number:
                continue
            if isinstance(entry, threading.Event):
                entry.set()
            else:
                self.let_go(entry.stream, entry.number)

    def gate(self, stream: str, number: int) -> threading.Event | None:
        """What the next work has to wait for."""
        index, self._seen = self._seen, self._seen + 1
        if self._released or not self._which(stream, index):
            return None
        gate = threading.Event()
        self._held.setdefault(stream, []).append((number, gate))
        return gate

    def waits(self, stream: str, number: int, mark: Marked) -> None:
        """From place `number` on, a stream waits for what is before the mark."""
        self._held.setdefault(stream, []).append((number, mark))
