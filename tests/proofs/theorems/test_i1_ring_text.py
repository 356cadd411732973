"""What is read off a ring is what it does; what is no ring is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import pytest

from kvstage_model.language.edits import edited, without
from kvstage_model.language.operations import Copy, Event, HostCopy, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schemes.gather import gather_read
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_model.schemes.staged import staged_read
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_proofs.theorems.i1_ring_text import Act, Offset, Ring, ring_of
from tests.support.rings import BROKEN, COPY, WAIT

TAKEN = Offset(-1, 1)


def test_a_read_takes_late() -> None:
    acts = (Act(Copy), Act(RecordEvent), Act(SyncEvent, TAKEN), Act(HostCopy, TAKEN))
    assert ring_of(ring_read) == Ring(Direction.READ, acts, Offset(1, -1), waits_at_end=False)


def test_a_write_fills_and_sends_in_one_step() -> None:
    acts = (Act(SyncEvent), Act(HostCopy), Act(Copy), Act(RecordEvent))
    assert ring_of(ring_write) == Ring(Direction.WRITE, acts, Offset(), waits_at_end=True)


def test_edits_are_read_too() -> None:
    def kinds(name: str) -> list[type]:
        return [act.kind for act in ring_of(BROKEN[name]).acts]

    assert kinds("read without the wait") == [Copy, RecordEvent, HostCopy]
    assert kinds("write that records before the copy") == [SyncEvent, HostCopy, RecordEvent, Copy]
    assert Act(SyncEvent, TAKEN, 1) in ring_of(BROKEN["read that waits for the next slot"]).acts
    assert Act(SyncEvent, TAKEN, -1) in ring_of(BROKEN["read that waits for the slot before"]).acts
    early = ring_of(BROKEN["read that refills a step early"])
    assert (early.acts[3], early.steps) == (Act(HostCopy, Offset(-1, 0)), Offset(1, 0))
    assert not ring_of(BROKEN["write without the wait at its end"]).waits_at_end


def test_an_operation_that_a_ring_lacks_has_a_place_that_the_host_never_comes_past() -> None:
    ring = ring_of(edited(ring_read, without(WAIT)))
    assert (ring.place(HostCopy), ring.place(SyncEvent)) == (2, 3)


def changed(change: Callable[[Scheme], Scheme]) -> SchemeFunction:
    return edited(ring_read, change)


def one_event(scheme: Scheme) -> Scheme:
    def step(i):  # type: ignore[no-untyped-def]
        for o in scheme.step(i):
            yield replace(o, event=Event("filled", 0)) if isinstance(o, RecordEvent | SyncEvent) else o

    return replace(scheme, step=step)


def three_slots_alone(scheme: Scheme) -> Scheme:
    """Right for up to three slots, wrong for four."""
    return without(WAIT)(scheme) if scheme.buffers[1].slots == 4 else scheme


def waits_twice(scheme: Scheme) -> Scheme:
    return replace(
        scheme, step=lambda i: [o for operation in scheme.step(i) for o in [operation] * (1 + isinstance(operation, SyncEvent))]
    )


def backwards_at_times(scheme: Scheme) -> Scheme:
    return replace(scheme, step=lambda i: list(scheme.step(i))[:: -1 if i % 2 else 1])


def two_events(scheme: Scheme) -> Scheme:
    def step(i):  # type: ignore[no-untyped-def]
        for o in scheme.step(i):
            yield replace(o, event=Event("other", o.event.index)) if isinstance(o, SyncEvent) else o

    return replace(scheme, step=step)


def synchronizes(runs: Runs, slots: Annotated[int, AtLeast(1)]) -> Scheme:
    return staged_read(runs)


NO_RINGS: dict[str, tuple[SchemeFunction, str]] = {
    "no slots": (staged_read, "takes runs and a number of slots"),
    "two rings": (gather_read, "takes runs and a number of slots"),
    "a wait for the stream": (synchronizes, "does not issue a SyncStream"),
    "one event for all slots": (changed(one_event), "a RecordEvent follows the steps in none of the ways"),
    "another ring for four slots": (changed(three_slots_alone), "a SyncEvent follows the steps in none of the ways"),
    "twice in a step": (changed(waits_twice), "each operation at most once"),
    "another order in every second step": (changed(backwards_at_times), "always in the same order"),
    "a wait for another event": (changed(two_events), "one event for each slot"),
    "no result": (changed(lambda scheme: replace(scheme, result=None)), "states its result"),
    "a prologue": (changed(lambda scheme: replace(scheme, prologue=(SyncStream("copy"),))), "no prologue"),
    "another stream at the end": (changed(lambda scheme: replace(scheme, epilogue=(SyncStream("x"),))), "one stream"),
    "two waits at the end": (changed(lambda scheme: replace(scheme, epilogue=(SyncStream("copy"),) * 2)), "at its end"),
    "a step too many": (changed(lambda scheme: replace(scheme, steps=scheme.steps + 2)), "the number of steps follows"),
    "no copy": (changed(without(COPY)), "copies item i"),
}


@pytest.mark.parametrize("what", NO_RINGS)
def test_what_is_no_ring_is_refused(what: str) -> None:
    function, reason = NO_RINGS[what]
    with pytest.raises(UnsupportedError, match=reason):
        ring_of(function)
