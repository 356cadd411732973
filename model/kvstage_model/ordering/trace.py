"""Traces: which operations began and ended in which order. One type serves a simulated run, a recorded run and a counterexample."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..language.operations import OnStream, Post, Release
from .axioms import Moment
from .program import HOST, Issued, describe


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Operation number `index` of the program begins or ends.

    `at` is when, in nanoseconds of a clock that all events of the trace share, if it was measured: all are, or none.
    """

    index: int
    moment: Moment
    at: int | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """A program and one order in which its operations began and ended."""

    program: tuple[Issued, ...]
    events: tuple[TraceEvent, ...]

    def lane(self, index: int) -> str:
        """The lane of an operation in a picture: its agent's.

        Who rows were released to, or a transfer was posted to, acts at any time: each of these has a lane of its own.
        """
        issued = self.program[index]
        return f"{issued.agent} {index}" if isinstance(issued.operation, Release | Post) else issued.agent

    def lanes(self) -> dict[str, str]:
        """Each lane and how it is called: the host first, then the others in the order in which they come into it."""
        found = {HOST: HOST}
        for event in self.events:
            issued = self.program[event.index]
            stream = isinstance(issued.operation, OnStream)
            found.setdefault(self.lane(event.index), f"stream {issued.agent}" if stream else issued.agent)
        return found

    def at_once(self, position: int) -> bool:
        """Whether an operation that begins at this position of `events` ends before anything else happens."""
        event, after = self.events[position], self.events[position + 1 : position + 2]
        return event.moment is Moment.BEGIN and any(each.index == event.index for each in after)

    def until(self, *indices: int) -> "Trace":
        """The trace up to the event by which all of these operations have ended."""
        last = max(at for at, event in enumerate(self.events) if event.index in indices)
        return Trace(self.program, self.events[: last + 1])

    def lines(self, *marked: int) -> Iterator[str]:
        """The trace as text, one line an event: agent, what it did, on which rows; an arrow at the `marked` operations."""
        texts = [describe(self.program[event.index]) for event in self.events]
        width = max(map(len, texts), default=0)
        for event, text in zip(self.events, texts, strict=True):
            verb = "begins" if event.moment is Moment.BEGIN else "ends"
            line = f"{self.program[event.index].agent:>8}  {verb:<6}  {text}"
            yield f"{line}{' ' * (width - len(text))}  <--" if event.index in marked else line
