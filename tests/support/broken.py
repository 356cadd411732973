"""Schemes with a mistake, made from the library's own: by editing what a step yields, or with the edits of the model."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps

from kvstage_model.language import edits
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import Copy, HostCopy, Operation, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.registry import LIBRARY, Pair

Edit = Callable[[list[Operation]], Iterable[Operation]]


def changed(pair: Pair, change: Callable[[Scheme], Scheme]) -> Pair:
    """A pair whose every scheme is changed; its parameters stay."""

    def through(function: SchemeFunction) -> SchemeFunction:
        @wraps(function)
        def made(*arguments, **options):
            return change(function(*arguments, **options))

        return made

    return Pair(through(pair.read), through(pair.write))


def edited(name: str, edit: Edit) -> Pair:
    """A scheme of the library with each step's operations edited."""
    return changed(LIBRARY[name], lambda scheme: replace(scheme, step=lambda i: edit(list(scheme.step(i)))))


def without(pair: Pair, named: Named) -> Pair:
    """A pair without some operations, wherever they stand."""
    return changed(pair, edits.without(named))


def without_wait(operations: list[Operation]) -> list[Operation]:
    """Never waits for its copy."""
    return [operation for operation in operations if not isinstance(operation, SyncStream)]


def late_wait(operations: list[Operation]) -> list[Operation]:
    """Takes the rows, and waits for them then. Harmless in a write, which has nothing behind its wait."""
    return sorted(operations, key=lambda operation: isinstance(operation, SyncStream))


def early_wait(operations: list[Operation]) -> list[Operation]:
    """Waits before it issues the copy, so for the previous one."""
    return sorted(operations, key=lambda operation: not isinstance(operation, SyncStream))


def unedited(operations: list[Operation]) -> list[Operation]:
    """The twin of the mistakes: nothing changes."""
    assert {type(operation) for operation in operations} == {Copy, HostCopy, SyncStream}
    return operations
