"""The schemes that keep several runs in flight: rings of staging slots, with an event for each slot.

A pipelined read issues the copy of run i, then takes run i - slots + 1: when the host takes a run, the copies of the
next ones are under way. A slot is refilled in the step after it was taken, so its event is the only wait it needs.
"""

from collections.abc import Iterator

from .buffers import Buffer, Memory, Paged
from .operations import Copy, Event, Gather, HostCopy, Operation, RecordEvent, Scatter, SyncEvent, SyncStream, WaitEvent
from .parameters import Distinct
from .ranges import Positive
from .runs import Piece, Pieces, Runs
from .scheme import Direction, Result, Scheme
from .schemes import STREAM, pool_of

COMPUTE = "compute"
"""The stream of the kernels that gather and scatter."""


def ring_read(runs: Runs, slots: Positive) -> Scheme:
    """A ring of pinned slots, pipelined: the host takes one run while the copies of the next ones are under way."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PINNED, slots, runs.longest)
    out = Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        if i < runs.number:
            run = runs.part(i)
            yield Copy(STREAM, pool.at(run.slot, run.start, run.count), stage.at(i % slots, 0, run.count))
            yield RecordEvent(Event("filled", i % slots), STREAM)
        item = i - slots + 1
        if 0 <= item < runs.number:
            run = runs.part(item)
            yield SyncEvent(Event("filled", item % slots), aim=item)
            yield HostCopy(stage.at(item % slots, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, lambda p: runs.holder(p) + slots - 1)
    return Scheme("ring read", (pool, stage, out), runs.number + slots - 1, step, result=result)


def ring_write(runs: Distinct[Runs], slots: Positive) -> Scheme:
    """A ring of pinned slots: the host fills one while the copies of the others are under way; one wait at the end."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PINNED, slots, runs.longest)
    rows = Buffer("rows", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield SyncEvent(Event("sent", i % slots), aim=i - slots)
        yield HostCopy(rows.at(0, run.position, run.count), stage.at(i % slots, 0, run.count))
        yield Copy(STREAM, stage.at(i % slots, 0, run.count), pool.at(run.slot, run.start, run.count))
        yield RecordEvent(Event("sent", i % slots), STREAM)

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("ring write", (pool, stage, rows), runs.number, step, (SyncStream(STREAM),), result)


def gather_read(pieces: Pieces[Piece], device_slots: Positive, pinned_slots: Positive) -> Scheme:
    """A kernel packs a piece into a device slot, a copy moves it to a pinned slot, the host takes it late.

    The event `free` is needed where there are fewer device slots than pinned ones, and only there: else the host took the
    piece, and so waited for its copy, before its device slot is packed again. It is kept, since the caller picks the depths.
    """
    pool, out = pool_of(pieces), Buffer("out", Memory.PAGEABLE, 1, pieces.length)
    packed = Buffer("packed", Memory.DEVICE, device_slots, pieces.longest)
    stage = Buffer("stage", Memory.PINNED, pinned_slots, pieces.longest)

    def step(i: int) -> Iterator[Operation]:
        if i < pieces.number:
            piece, device, pinned = pieces.part(i), i % device_slots, i % pinned_slots
            yield WaitEvent(COMPUTE, Event("free", device), aim=i - device_slots)
            yield Gather(COMPUTE, Paged(pool, pieces, piece.position, piece.count), packed.at(device, 0, piece.count))
            yield RecordEvent(Event("packed", device), COMPUTE)
            yield WaitEvent(STREAM, Event("packed", device), aim=i)
            yield Copy(STREAM, packed.at(device, 0, piece.count), stage.at(pinned, 0, piece.count))
            yield RecordEvent(Event("free", device), STREAM)
            yield RecordEvent(Event("filled", pinned), STREAM)
        item = i - pinned_slots + 1
        if 0 <= item < pieces.number:
            piece, pinned = pieces.part(item), item % pinned_slots
            yield SyncEvent(Event("filled", pinned), aim=item)
            yield HostCopy(stage.at(pinned, 0, piece.count), out.at(0, piece.position, piece.count))

    def taken(position: int) -> int:
        return pieces.holder(position) + pinned_slots - 1

    result = Result(Direction.READ, pool, out, pieces.length, pieces.address, taken)
    return Scheme("gather read", (pool, packed, stage, out), pieces.number + pinned_slots - 1, step, result=result)


def gather_write(pieces: Distinct[Pieces[Piece]], device_slots: Positive, pinned_slots: Positive) -> Scheme:
    """The host fills a pinned slot, a copy moves it to a device slot, a kernel unpacks the piece from there."""
    pool, rows = pool_of(pieces), Buffer("rows", Memory.PAGEABLE, 1, pieces.length)
    packed = Buffer("packed", Memory.DEVICE, device_slots, pieces.longest)
    stage = Buffer("stage", Memory.PINNED, pinned_slots, pieces.longest)

    def step(i: int) -> Iterator[Operation]:
        piece, device, pinned = pieces.part(i), i % device_slots, i % pinned_slots
        yield SyncEvent(Event("sent", pinned), aim=i - pinned_slots)
        yield HostCopy(rows.at(0, piece.position, piece.count), stage.at(pinned, 0, piece.count))
        yield WaitEvent(STREAM, Event("free", device), aim=i - device_slots)
        yield Copy(STREAM, stage.at(pinned, 0, piece.count), packed.at(device, 0, piece.count))
        yield RecordEvent(Event("sent", pinned), STREAM)
        yield WaitEvent(COMPUTE, Event("sent", pinned), aim=i)
        yield Scatter(COMPUTE, packed.at(device, 0, piece.count), Paged(pool, pieces, piece.position, piece.count))
        yield RecordEvent(Event("free", device), COMPUTE)

    result = Result(Direction.WRITE, pool, rows, pieces.length, pieces.address, pieces.holder)
    return Scheme("gather write", (pool, packed, stage, rows), pieces.number, step, (SyncStream(COMPUTE),), result)
