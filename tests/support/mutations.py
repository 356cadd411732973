"""How a method of the library is replaced by one with a mistake, and the replacements that mutants are made of."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kvstage.calls import Calls
from kvstage.runtime import performer
from kvstage.runtime.memory_budget import Loan
from kvstage.runtime.pending import Pending
from kvstage.runtime.row_numbers import Addresses
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.operations import Copy, WaitEvent


@dataclass(frozen=True)
class Mutant:
    """What is wrong, where, the method that replaces another one, and the run of `turns` that shows it."""

    what: str
    owner: Any
    method: str
    made: Callable[[Callable[..., Any]], Callable[..., Any]]
    run: str

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        original = getattr(self.owner, self.method)
        mutated = self.made(original)
        patch.setattr(self.owner, self.method, mutated)
        for kind, function in performer._HOW.items():  # the table by which a performer finds its own methods
            if function is original:
                patch.setitem(performer._HOW, kind, mutated)


def nothing(original: Callable[..., Any]) -> Callable[..., Any]:
    """It does nothing at all."""
    return lambda *arguments, **options: None


def always(answer: Any) -> Callable[..., Any]:
    """It answers one thing, and does nothing."""
    return lambda original: lambda *arguments, **options: answer


def with_arguments(change: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """It is called with other arguments."""
    return lambda original: lambda self, *arguments: original(self, *change(*arguments))


def every_second(original: Callable[..., Any]) -> Callable[..., Any]:
    """Every second call of it is left out."""
    seen = []

    def made(*arguments: Any) -> Any:
        seen.append(1)
        return original(*arguments) if len(seen) % 2 else None

    return made


def ordered(key: Callable[[Any], bool]) -> Callable[..., Any]:
    """What a step issues is issued in another order: that of a key, and otherwise as it was."""
    return lambda original: lambda self, operations: original(self, sorted(operations, key=key))


def other_slot(rows: Any) -> Any:
    return replace(rows, slot=(rows.slot + 1) % rows.buffer.slots)


def fewer(rows: Any) -> Any:
    return replace(rows, count=max(rows.count - 1, 1))


def shifted(rows: Any) -> Any:
    return replace(rows, start=(rows.start + 1) % rows.buffer.rows) if rows.count < rows.buffer.rows else rows


def of_another_slot(wait: WaitEvent) -> tuple[WaitEvent]:
    return (replace(wait, event=replace(wait.event, index=1 - wait.event.index)),)


def on_copy(change: Callable[[Copy], Copy]) -> Callable[..., Any]:
    return with_arguments(lambda copy: (change(copy),))


def fresh_events(original: Callable[..., Any]) -> Callable[..., Any]:
    """A call forgets the events of the one before."""

    def made(self: Runtime, *arguments: Any, **options: Any) -> Any:
        self._events.clear()
        return original(self, *arguments, **options)

    return made


def given_back_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """What was borrowed for a result is free for the next call before the rows have arrived."""

    def made(self: Calls, loans: list[Loan], *arguments: Any) -> Any:
        tensor = original(self, loans, *arguments)
        loans[-1].give_back()
        return tensor

    return made


def one_mark_for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    """All that is under way on a device is marked with one event, which is recorded again by the next call."""

    def made(self: Pending, device: Any, stream: str) -> None:
        original(self, device, stream)
        self.work.event = vars(device).setdefault("_mark_of_all", self.work.event)

    return made


def stale(original: Callable[..., Any]) -> Callable[..., Any]:
    """What was found for one kernel is given to all of the same length."""
    found: dict[tuple[int, int], Any] = {}

    def made(self: Addresses, paged: Any, *arguments: Any) -> Any:
        return found.setdefault((id(self), paged.count), original(self, paged, *arguments))

    return made


def of_the_table_before(original: Callable[..., Any]) -> Callable[..., Any]:
    """The blocks of one call are taken for those of the next."""

    def made(*arguments: Any, last: Any = None, **options: Any) -> Any:
        return last or original(*arguments, last=last, **options)

    return made


def short_of_a_row(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, stream, source, target: original(self, stream, source[:-1], target[:-1]) if len(source) > 1 else None


def settled_without_a_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    """What a call that broke off has left is used again at once."""

    def made(self: Runtime) -> int:
        self._doubtful.clear()
        return int(original(self))

    return made


def late(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's own copy is put on a stream."""
    return lambda self, source, target: self.copy("host", source, target)


def of_others(kind: type) -> Callable[[Any], bool]:
    """A key that puts operations of one kind first."""
    return lambda operation: not isinstance(operation, kind)
