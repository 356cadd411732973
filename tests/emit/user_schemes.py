"""Schemes of a user's own: queries, fresh events, kernels, a branch that a number depends on, and a negative remainder."""

from collections.abc import Iterator
from typing import Annotated

from kvstage_model import (
    AtLeast,
    Buffer,
    Copy,
    CopyBatch,
    Event,
    Flags,
    HostRead,
    HostWrite,
    Launch,
    Memory,
    Operation,
    QueryEvent,
    RecordEvent,
    Scheme,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.schemes import sessions

ring_session = sessions.ring_session
batch_session = sessions.batch_session

Slots = Annotated[int, AtLeast(1)]


def polled(turns: Annotated[int, AtLeast(0)], free: Flags) -> Scheme:
    """Asks whether a slot is free, and waits only if it is not."""
    pinned, device = Buffer("pinned", Memory.PINNED, 2, 1), Buffer("device", Memory.DEVICE, turns, 1)

    def step(i: int) -> Iterator[Operation]:
        slot = i % 2
        answer = free(i)
        yield QueryEvent(Event("sent", slot), answer)
        if not answer:
            yield SyncEvent(Event("sent", slot), aim=i - 2)
        yield HostWrite(pinned.at(slot, 0, 1))
        yield Copy("h2d", pinned.at(slot, 0, 1), device.at(i, 0, 1))
        yield RecordEvent(Event("sent", slot), "h2d")

    return Scheme("polled", (pinned, device), turns, step)


def fresh(turns: Annotated[int, AtLeast(0)], slots: Slots) -> Scheme:
    """Makes its events anew in each call, and drains at its end."""
    pinned, device = Buffer("pinned", Memory.PINNED, slots, 1), Buffer("device", Memory.DEVICE, turns, 1)

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("sent", i % slots), aim=i - slots)
        yield HostWrite(pinned.at(i % slots, 0, 1))
        yield Copy("h2d", pinned.at(i % slots, 0, 1), device.at(i, 0, 1))
        yield RecordEvent(Event("sent", i % slots), "h2d")

    return Scheme("fresh", (pinned, device), turns, step, epilogue=(SyncStream("h2d"),), fresh_events=True)


def backwards(turns: Annotated[int, AtLeast(0)]) -> Scheme:
    """Counts its slots down, so that a remainder is of a negative number."""
    pinned, device = Buffer("pinned", Memory.PINNED, 3, 1), Buffer("device", Memory.DEVICE, turns, 1)

    def step(i: int) -> Iterator[Operation]:
        slot = (0 - i) % 3
        if slot == 0:  # noqa: SIM108
            place = i
        else:
            place = 0 * i + i
        yield SyncStream("h2d")
        yield HostWrite(pinned.at(slot, 0, 1))
        yield CopyBatch("h2d", ((pinned.at(slot, 0, 1), device.at(place, 0, 1)),))

    return Scheme("backwards", (pinned, device), turns, step, epilogue=(SyncStream("h2d"),))


def kernels(turns: Annotated[int, AtLeast(0)]) -> Scheme:
    """A kernel fills a slot, a copy takes it to the host, and the host reads it: before the loop, an event of the caller's."""
    device, pinned = Buffer("device", Memory.DEVICE, 1, 4), Buffer("pinned", Memory.PINNED, 1, 4)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(device.at(0, 0, 4),))
        yield RecordEvent(Event("computed"), "compute")
        yield WaitEvent("d2h", Event("computed"), aim=i)
        yield Copy("d2h", device.at(0, 0, 4), pinned.at(0, 0, 4))
        if i == turns - 1:
            yield SyncStream("d2h")
            return
        yield SyncStream("d2h")
        yield HostRead(pinned.at(0, 0, 4))

    return Scheme("kernels", (device, pinned), turns, step, prologue=(SyncStream("d2h"), SyncStream("compute")))
