"""Rings that are wrong in one way: edits of the very loops that the library runs."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kvstage_model.language.edits import Edit, Named, edited, right_after, without
from kvstage_model.language.operations import Copy, Event, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.ring import ring_read, ring_write

RIGHT = {"read": ring_read, "write": ring_write}


def waiting_for(aside: int) -> Edit:
    """Each wait is for the event of a slot so far aside."""

    def edit(scheme: Scheme) -> Scheme:
        (slots,) = [buffer.slots for buffer in scheme.buffers if buffer.name == "stage"]

        def moved(operation: Operation) -> Operation:
            if not isinstance(operation, SyncEvent):
                return operation
            return replace(operation, event=Event(operation.event.name, (operation.event.index + aside) % slots))

        return replace(scheme, step=lambda i: map(moved, scheme.step(i)))

    return edit


def taken_a_step_late(scheme: Scheme) -> Scheme:
    """A read whose slots are filled again in the step that takes them: a step early."""

    def step(i: int) -> Iterator[Operation]:
        if i < scheme.steps:
            yield from only(scheme.step(i), Copy, RecordEvent)
        if i > 0:
            yield from only(scheme.step(i - 1), SyncEvent, HostCopy)

    assert scheme.result is not None
    return replace(scheme, steps=scheme.steps + 1, step=step)


def only(operations: Iterable[Operation], *kinds: type[Operation]) -> Iterator[Operation]:
    return (operation for operation in operations if isinstance(operation, kinds))


WAIT, RECORD, COPY, END = Named(SyncEvent), Named(RecordEvent), Named(Copy), Named(SyncStream)
BROKEN: dict[str, SchemeFunction] = {
    "read without the wait": edited(ring_read, without(WAIT)),
    "read without the record": edited(ring_read, without(RECORD)),
    "read that records before the copy": edited(ring_read, right_after(COPY, RecordEvent)),
    "read that waits behind its use": edited(ring_read, right_after(WAIT, HostCopy)),
    "read that refills a step early": edited(ring_read, taken_a_step_late),
    "read that waits for the next slot": edited(ring_read, waiting_for(1)),
    "read that waits for the slot before": edited(ring_read, waiting_for(-1)),
    "write without the wait": edited(ring_write, without(WAIT)),
    "write without the record": edited(ring_write, without(RECORD)),
    "write that records before the copy": edited(ring_write, right_after(COPY, RecordEvent)),
    "write that waits behind its refill": edited(ring_write, right_after(WAIT, HostCopy)),
    "write without the wait at its end": edited(ring_write, without(END)),
}
OVER_WAITING: dict[str, SchemeFunction] = {"write that waits for the next slot": edited(ring_write, waiting_for(1))}
"""Harmless: all copies are on one stream, and the next slot's is the later one. What one slot knows does not show it."""
