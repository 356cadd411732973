"""Holding work back: what makes a missing wait show every time on a device that is really asynchronous. For tests."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


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


class Gate(Protocol):
    """What held work waits for, in the device's own way."""

    def set(self) -> None:
        """Lets the work begin."""
        ...  # pragma: no cover


G = TypeVar("G", bound=Gate)


class HeldWork(Generic[G]):
    """Keeps chosen work back, and with it what its stream has to do after it. Made by a device's `hold`."""

    def __init__(self, which: Callable[[str, int], bool], new_gate: Callable[[], G]) -> None:
        self._which = which
        self._new_gate = new_gate
        self._seen = 0
        self._released = False
        self._held: dict[str, list[tuple[int, Callable[[], None]]]] = {}

    def release(self) -> None:
        """Lets go of everything, and holds nothing from now on."""
        self._released = True
        held, self._held = self._held, {}
        for entries in held.values():
            for _, let_go in entries:
                let_go()

    def let_go(self, stream: str, number: int) -> None:
        """Lets go of what must happen before place `number` of a stream: its work, and other streams' that it waits for."""
        entries = self._held.get(stream, [])
        self._held[stream] = [entry for entry in entries if entry[0] >= number]
        for at, let_go in entries:
            if at < number:
                let_go()

    def gate(self, stream: str, number: int) -> G | None:
        """What the next work has to wait for."""
        index, self._seen = self._seen, self._seen + 1
        if self._released or not self._which(stream, index):
            return None
        gate = self._new_gate()
        self._held.setdefault(stream, []).append((number, gate.set))
        return gate

    def waits(self, stream: str, number: int, mark: Marked) -> None:
        """From place `number` on, a stream waits for what is before the mark."""
        self._held.setdefault(stream, []).append((number, lambda: self.let_go(mark.stream, mark.number)))
