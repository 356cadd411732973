"""The watch over the library's runs: it says nothing of the runtime as it is, and finds each way in which it could drift."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice, Transfer
from kvstage.runtime.pending import Pending
from kvstage.runtime.performer import Performer
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.operations import Copy, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.schemes.registry import LIBRARY
from tests.support.drift import Watch, watching
from tests.support.plain import plain_read, random_blocks, same

Edit = Callable[[list[Operation]], list[Operation]]
PERFORM, EVENT = Performer.perform, Performer._event


def performing(edit: Edit) -> Callable[[Performer, Iterable[Operation]], None]:
    """A runtime that does something else with each step."""
    return lambda self, operations: PERFORM(self, edit(list(operations)))


def run(name: str, device: ThreadDevice, calls: int = 2) -> None:
    """Reads and writes of a pool of four blocks; the rows come as they must."""
    blocks = random_blocks(1, 4, 2, (3,), torch.uint8)
    stager = Stager(device, scheme=name)
    for _ in range(calls):
        read = stager.read(PagedPool(blocks.tensor), [3, 1, 0], 1, 6)
        read.wait()
        read.result()
        stager.write(PagedPool(blocks.tensor), [3, 1, 0], 1, random_blocks(2, 1, 5, (3,), torch.uint8).tensor[0]).wait()


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_as_it_is_does_not_drift(name: str, device: ThreadDevice, watch: Watch) -> None:
    before = watch.compared
    run(name, device)
    assert watch.compared - before >= 4
    assert watch.drifts == []


def dropping(kind: type) -> Edit:
    return lambda operations: [operation for operation in operations if not isinstance(operation, kind)]


def early(kind: type, other: type) -> Edit:
    """Operations of one kind come before those of another kind that stand right before them."""

    def edit(operations: list[Operation]) -> list[Operation]:
        edited = list(operations)
        for at in range(1, len(edited)):
            if isinstance(edited[at], kind) and isinstance(edited[at - 1], other):
                edited[at - 1 : at + 1] = reversed(edited[at - 1 : at + 1])
        return edited

    return edit


def changing(kind: type, change: Callable[[Any], Operation]) -> Edit:
    return lambda operations: [change(operation) if isinstance(operation, kind) else operation for operation in operations]


def twice(operations: list[Operation]) -> list[Operation]:
    waits = SyncEvent | SyncStream
    return [each for operation in operations for each in ([operation] * 2 if isinstance(operation, waits) else [operation])]


def next_slot(copy: Copy) -> Copy:
    slots = copy.target.buffer.slots
    return replace(copy, target=replace(copy.target, slot=(copy.target.slot + 1) % slots))


def next_block(copy: Copy) -> Copy:
    return replace(copy, source=replace(copy.source, slot=(copy.source.slot + 1) % copy.source.buffer.slots))


def fewer(copy: Copy) -> Copy:
    less = max(copy.source.count - 1, 0)
    return replace(copy, source=replace(copy.source, count=less), target=replace(copy.target, count=less))


MUTANTS: list[tuple[str, str, Edit]] = [
    ("per_block", "drops its wait", dropping(SyncStream)),
    ("per_block", "takes the rows before the wait", early(HostCopy, SyncStream)),
    ("per_row", "drops the host's copy", dropping(HostCopy)),
    ("per_row", "waits twice", twice),
    ("direct", "copies into the next block", changing(Copy, next_block)),
    ("direct", "copies a row less", changing(Copy, fewer)),
    ("ring", "drops its waits for events", dropping(SyncEvent)),
    ("ring", "drops its records", dropping(RecordEvent)),
    ("ring", "records before the copy", early(RecordEvent, Copy)),
    ("ring", "fills the neighbour's slot", changing(Copy, next_slot)),
    ("ring", "copies on another stream", changing(Copy, lambda copy: replace(copy, stream="other"))),
    ("gather", "drops the streams' waits", dropping(WaitEvent)),
    ("gather", "drops its records", dropping(RecordEvent)),
]


@pytest.mark.parametrize(("name", "mistake", "edit"), MUTANTS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_runtime_that_does_something_else_is_found(
    name: str, mistake: str, edit: Edit, device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Performer, "perform", performing(edit))
    run(name, device)
    assert watch.taken(), mistake


def test_one_event_for_all_slots_is_found(device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Performer, "_event", lambda self, event: EVENT(self, replace(event, index=0)))
    run("ring", device)
    assert "the event is another" in watch.taken()[0]


def test_events_that_are_forgotten_between_calls_are_found(
    device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Runtime.submit

    def forgetting(self: Runtime, *arguments: Any, **named: Any) -> Any:
        self._events = {}
        return submit(self, *arguments, **named)

    monkeypatch.setattr(Runtime, "submit", forgetting)
    run("ring", device, calls=1)
    assert watch.drifts == []
    run("ring", device)
    assert "the event is another" in watch.taken()[0]


def test_a_pending_that_is_never_marked_is_found(device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending, "mark", lambda self, *memory: None)
    run("direct", device)
    assert any("nothing has waited for it" in drift for drift in watch.drifts)
    assert any("is left to the caller, its mark is Copy" in drift for drift in watch.taken())


def test_a_transfer_that_does_not_wait_is_found(device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending, "wait", lambda self, timeout=None: None)
    monkeypatch.setattr(Pending, "query", lambda self: True)
    run("gather_pinned", device)
    device.synchronize("kvstage copy")
    assert len(watch.taken()) == 4


def test_twin_without_the_watch_none_of_it_is_seen(device: ThreadDevice, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows come right by luck: what a mutant does is only seen in what it issues."""
    monkeypatch.setattr(Performer, "perform", performing(twice))
    blocks = random_blocks(1, 4, 2, (3,), torch.uint8)
    read = Stager(device, scheme="per_row").read(PagedPool(blocks.tensor), [3, 1, 0], 1, 6)
    read.wait()
    assert same(read.result(), plain_read(blocks.tensor, [3, 1, 0], 1, 6))
    assert watch.taken()


def test_a_watch_ends(device: ThreadDevice) -> None:
    submit, wait = Runtime.submit, Transfer.wait
    with watching() as inner:
        run("per_row", device)
    assert inner.compared == 2 * 2 * 15
    assert (Runtime.submit, Transfer.wait) == (submit, wait)
