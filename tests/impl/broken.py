"""Schemes with a mistake, made from the library's own by editing what a step yields."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kvstage_model.library import LIBRARY, Pair
from kvstage_model.operations import Copy, HostCopy, Operation, SyncStream
from kvstage_model.runs import PagedRows
from kvstage_model.scheme import Scheme

Edit = Callable[[list[Operation]], Iterable[Operation]]


def edited(name: str, edit: Edit) -> Pair:
    """A scheme of the library with each step's operations edited."""

    def through(build: Callable[[PagedRows], Scheme]) -> Callable[[PagedRows], Scheme]:
        def made(rows: PagedRows) -> Scheme:
            scheme = build(rows)
            return replace(scheme, step=lambda i: edit(list(scheme.step(i))))

        return made

    return Pair(through(LIBRARY[name].read), through(LIBRARY[name].write))


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
