"""Edits of a scheme, as data: the mistakes that people make, applied to the very loop that is proved."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from .operations import Operation, stream_of
from .parameters import Declared, SchemeFunction, declared
from .scheme import Scheme

Edit: TypeAlias = Callable[[Scheme], Scheme]


@dataclass(frozen=True)
class Named:
    """The operations of one kind, on one stream where it is given. Never "the n-th": branches renumber."""

    kind: type
    stream: str | None = None

    def __call__(self, operation: Operation) -> bool:
        """Whether it is one of them."""
        return isinstance(operation, self.kind) and self.stream in (None, stream_of(operation))

    def __str__(self) -> str:
        """As people would say it."""
        return self.kind.__name__ + (f" on stream {self.stream}" if self.stream else "")


def edited(function: SchemeFunction, edit: Edit) -> Declared:
    """The scheme function whose every scheme is edited."""
    return Declared(lambda **arguments: edit(function(**arguments)), declared(function))


def without(named: Named) -> Edit:
    """Take operations out, of the loop and of the epilogue."""

    def edit(scheme: Scheme) -> Scheme:
        kept = _each_step(scheme, lambda operations: (operation for operation in operations if not named(operation)))
        epilogue = tuple(operation for operation in scheme.epilogue if not named(operation))
        return replace(kept, name=f"{scheme.name} without {named}", epilogue=epilogue)

    return edit


def right_after(named: Named, other: type) -> Edit:
    """Move operations behind the next operation of another kind in their step, or behind the one before them."""

    def reorder(operations: Iterable[Operation]) -> Iterator[Operation]:
        listed = list(operations)
        moved = [operation for operation in listed if named(operation)]
        for operation in listed:
            if not named(operation):
                yield operation
            if isinstance(operation, other):
                yield from moved

    def edit(scheme: Scheme) -> Scheme:
        return replace(_each_step(scheme, reorder), name=f"{scheme.name} with {named} right after {other.__name__}")

    return edit


def out_of_the_loop(named: Named, *instead: Operation) -> Edit:
    """Take operations out of the loop, and perform `instead` once at its end."""

    def edit(scheme: Scheme) -> Scheme:
        return replace(without(named)(scheme), name=f"{scheme.name} with {named} out of the loop", epilogue=instead)

    return edit


def _each_step(scheme: Scheme, change: Callable[[Iterable[Operation]], Iterable[Operation]]) -> Scheme:
    return replace(scheme, step=lambda i: change(scheme.step(i)))
