"""Edits of a scheme: operations taken out or moved, another stream, a result that kernels use. Broken variants are made of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from .operations import Event, OnStream, Operation, QueryEvent, RecordEvent, SyncEvent, SyncStream, WaitEvent, event_of, stream_of
from .parameters import Declared, SchemeFunction, declared
from .scheme import Result, Scheme

Edit: TypeAlias = Callable[[Scheme], Scheme]


@dataclass(frozen=True)
class Named:
    """The operations of one kind, on one stream and of one event if they are given. Never "the n-th": branches renumber."""

    kind: type
    stream: str | None = None
    event: str | None = None

    @classmethod
    def of(cls, operation: Operation) -> "Named":
        """The name of an operation, with all that names it."""
        event = event_of(operation)
        return cls(type(operation), stream_of(operation), event.name if event else None)

    def __call__(self, operation: Operation) -> bool:
        """Whether it is one of them."""
        event = event_of(operation)
        of_event = self.event is None or (event is not None and event.name == self.event)
        return isinstance(operation, self.kind) and self.stream in (None, stream_of(operation)) and of_event

    def __str__(self) -> str:
        """As people would say it."""
        event = f" of {self.event!r}" if self.event else ""
        return self.kind.__name__ + event + (f" on stream {self.stream}" if self.stream else "")


Ordering = SyncStream | SyncEvent | QueryEvent | WaitEvent | RecordEvent
"""What orders operations and does nothing else: the waits, the queries that may spare one, and the records that they are for."""


def orderings(scheme: Scheme) -> tuple[Named, ...]:
    """The names of all waits and records of a concrete scheme, in the order in which they are first issued."""
    return tuple(dict.fromkeys(named for named, _ in placed_orderings(scheme)))


def placed_orderings(scheme: Scheme) -> tuple[tuple[Named, str], ...]:
    """The same, each with the name of the phase that issues it: a wait of the loop and one after it may share a name."""
    issued = ((operation, phase.name) for phase in scheme.phases for i in range(phase.steps) for operation in phase.step(i))
    return tuple(dict.fromkeys((Named.of(operation), phase) for operation, phase in issued if isinstance(operation, Ordering)))


def edited(function: SchemeFunction, edit: Edit) -> Declared:
    """The scheme function whose every scheme is edited."""
    return Declared(lambda **arguments: edit(function(**arguments)), declared(function))


def without(named: Named, phase: str | None = None) -> Edit:
    """Take operations out, wherever they stand, or of one phase only."""

    def edit(scheme: Scheme) -> Scheme:
        name = f"{scheme.name} without {named}{f' in the {phase}' if phase else ''}"
        return scheme.changed(lambda operations: (o for o in operations if not named(o)), name, phase)

    return edit


def right_after(named: Named, other: type) -> Edit:
    """Move operations after the next operation of another kind in their step, or after the one before them."""

    def reorder(operations: Iterable[Operation]) -> Iterator[Operation]:
        listed = list(operations)
        moved = [operation for operation in listed if named(operation)]
        for operation in listed:
            if not named(operation):
                yield operation
            if isinstance(operation, other):
                yield from moved

    def edit(scheme: Scheme) -> Scheme:
        return scheme.changed(reorder, f"{scheme.name} with {named} right after {other.__name__}")

    return edit


def out_of_the_loop(named: Named, *instead: Operation) -> Edit:
    """Take operations out of the loop, and perform `instead` once at its end."""

    def edit(scheme: Scheme) -> Scheme:
        return replace(without(named)(scheme), name=f"{scheme.name} with {named} out of the loop", epilogue=instead)

    return edit


def on_stream(scheme: Scheme, old: str, new: str) -> Scheme:
    """The scheme with the work of one stream issued on another one."""

    def move(operations: Iterable[Operation]) -> Iterator[Operation]:
        for operation in operations:
            if isinstance(operation, OnStream | SyncStream) and operation.stream == old:
                moved: Operation = replace(operation, stream=new)
                yield moved
            else:
                yield operation

    return scheme.changed(move, f"{scheme.name} on {new}")


def handed_to(scheme: Scheme, stream: str, caller: str) -> Scheme:
    """The scheme whose caller is the kernels of stream `caller`: events order it after them, and them after it.

    The host waits for nothing at the end. `stream` is the one that the scheme ends on.
    """
    before, after = Event("caller's"), Event("moved")
    prologue = (RecordEvent(before, caller), WaitEvent(stream, before))
    epilogue = (RecordEvent(after, stream), WaitEvent(caller, after))
    result: Result | None = None if scheme.result is None else replace(scheme.result, target_on=caller, source_on=caller)
    return replace(scheme, name=f"{scheme.name} for {caller}", prologue=prologue, epilogue=epilogue, result=result)
