"""A scheme: one staging loop, stated once, that is proved, simulated and run.

A scheme function takes declared parameters and returns a `Scheme`. The library calls it with ints, the prover with
symbolic indices of every length, block size and table at once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from .buffers import Buffer, Rows
from .operations import Event, HostRead, HostWrite, Launch, Operation, Post, QueryEvent, RecordEvent, SyncEvent, Take, WaitEvent

PROLOGUE, LOOP, EPILOGUE, CALLER = "prologue", "loop", "epilogue", "caller"
"""The names of what a call does before the loop that moves rows, of that loop, of what it does after it, and of what the
caller does once the call has returned."""


class PhaseNameError(ValueError):
    """Two phases of a session have one name, or one has the name of what the caller does."""


class Direction(Enum):
    """Which way the rows of a transfer go."""

    READ = "read"
    """From the pool to the host."""
    WRITE = "write"
    """From the host to the pool."""


def in_order(position: int) -> tuple[int, int]:
    """Where a row lies in a buffer of one slot that holds the rows of a transfer one after the other."""
    return 0, position


@dataclass(frozen=True, eq=False)
class Result:
    """What a call promises: each row of the transfer arrives at its place, and nothing else changes.

    Row `position` lies in the pool at `address(position)`, and at the host in slot 0, row `position`, or at
    `host_address(position)` if the host has a pool too. `step(position)` names the step that brings it to its place,
    and with two pools `first(step)` the first row that a step moves: hints for the proof, never trusted. The caller who
    uses the target, and overwrites the source, is the host, or kernels of the stream that `target_on` and `source_on` name.
    """

    direction: Direction
    pool: Buffer
    host: Buffer
    length: int
    address: Callable[[int], tuple[int, int]]
    step: Callable[[int], int]
    target_on: str | None = None
    source_on: str | None = None
    host_address: Callable[[int], tuple[int, int]] = in_order
    first: Callable[[int], int] | None = None

    def _host(self, position: int) -> Rows:
        slot, row = self.host_address(position)
        return self.host.at(slot, row, 1)

    def _pool(self, position: int) -> Rows:
        slot, row = self.address(position)
        return self.pool.at(slot, row, 1)

    def source(self, position: int) -> Rows:
        """The one row that row `position` comes from."""
        return self._pool(position) if self.direction is Direction.READ else self._host(position)

    def target(self, position: int) -> Rows:
        """The one row where row `position` arrives."""
        return self._host(position) if self.direction is Direction.READ else self._pool(position)

    def caller(self, position: int) -> tuple[Operation, ...]:
        """What the caller may do with a row as soon as the call has returned: use the copy, overwrite the original."""
        target, source = self.target(position), self.source(position)
        uses = HostRead(target) if self.target_on is None else Launch(self.target_on, reads=(target,))
        overwrites = HostWrite(source) if self.source_on is None else Launch(self.source_on, writes=(source,))
        return uses, overwrites


Change: TypeAlias = Callable[[Iterable[Operation]], Iterable[Operation]]
"""An edit of the operations of one step."""


@dataclass(frozen=True, eq=False)
class Phase:
    """A loop: `step(0)` .. `step(steps - 1)`, each the operations that the host issues in that turn, in order."""

    name: str
    steps: int
    step: Callable[[int], Iterable[Operation]]


@dataclass(frozen=True, eq=False)
class Scheme:
    """A staging loop over its buffers: the `prologue`, its steps, then the `epilogue`. It may be called again and again.

    `result` states what a call promises; a loop without one is judged on its hazards and bounds alone. Events outlive a
    call, unless each call makes `fresh_events`.
    """

    name: str
    buffers: tuple[Buffer, ...]
    steps: int
    step: Callable[[int], Iterable[Operation]]
    epilogue: tuple[Operation, ...] = ()
    result: Result | None = None
    prologue: tuple[Operation, ...] = ()
    fresh_events: bool = False

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The prologue, the loop, the epilogue, and what the caller does after the call has returned."""
        found = [once(PROLOGUE, *self.prologue)] if self.prologue else []
        found.append(Phase(LOOP, self.steps, self.step))
        if self.epilogue:
            found.append(once(EPILOGUE, *self.epilogue))
        if self.result is not None:
            found.append(Phase(CALLER, self.result.length, self.result.caller))
        return tuple(found)

    def changed(self, change: Change, name: str, only: str | None = None) -> "Scheme":
        """The scheme with the operations of every step, of the prologue and of the epilogue changed; or of one phase only."""
        prologue = self.prologue if only not in (None, PROLOGUE) else tuple(change(self.prologue))
        epilogue = self.epilogue if only not in (None, EPILOGUE) else tuple(change(self.epilogue))
        step = self.step if only not in (None, LOOP) else lambda i: change(self.step(i))
        return replace(self, name=name, step=step, prologue=prologue, epilogue=epilogue)

    def in_call(self, operation: Operation, call: int) -> Operation:
        """The operation as call number `call` issues it: with events of its own, if each call makes fresh ones."""
        if self.fresh_events and isinstance(operation, RecordEvent | SyncEvent | WaitEvent | QueryEvent | Post | Take):
            return replace(operation, event=Event(operation.event.name, operation.event.index, call))
        return operation


@dataclass(frozen=True, eq=False)
class Session(Scheme):
    """Several loops, one after the other, as one call: schemes, and what the caller does before, between and after them.

    It states no result: it is judged on its hazards and bounds. Raises PhaseNameError if two phases have one name, or one
    is called "caller": that is the name of what the caller of a scheme does after it, of which less is demanded.
    """

    parts: tuple[Phase, ...] = ()

    def __post_init__(self) -> None:
        names = [getattr(part, "name", part) for part in self.parts]  # the prover's guard tells what is no phase
        for number, name in enumerate(names):
            if name in names[:number]:
                raise PhaseNameError(f"two phases of session {self.name!r} are called {name!r}: give each a name of its own")
            if name == CALLER:
                raise PhaseNameError(
                    f"a phase of session {self.name!r} is called {name!r}, a name of the library's: give it another"
                )

    @classmethod
    def of(cls, name: str, buffers: tuple[Buffer, ...], *parts: Phase) -> "Session":
        """The session of these phases, each under a name of its own."""
        return cls(name, buffers, sum(part.steps for part in parts), lambda _: (), parts=parts)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, in order."""
        return self.parts

    def changed(self, change: Change, name: str, only: str | None = None) -> "Session":
        """The session with the operations of every step changed; or of one phase only."""
        parts = (replace(part, step=_changed(part, change)) if only in (None, part.name) else part for part in self.parts)
        return replace(self, name=name, parts=tuple(parts))


def once(name: str, *operations: Operation) -> Phase:
    """A phase of a single step."""
    return Phase(name, 1, lambda _: operations)


def _changed(part: Phase, change: Change) -> Callable[[int], Iterable[Operation]]:
    return lambda i: change(part.step(i))
