"""Several runs in flight: a ring of staging slots, with an event for each slot.

A pipelined read issues the copy of run i, then takes run i - slots + 1: when the host takes a run, the copies of the
next ones are under way. A slot is refilled in the step after it was taken, so its event is the only wait it needs.
"""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory
from ..language.edits import Named
from ..language.operations import Copy, Event, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream
from ..language.parameters import Distinct
from ..language.partitions import Runs
from ..language.ranges import Positive
from ..language.scheme import Direction, Result, Scheme
from .base import STREAM, pool_of
from .loop import Loop, Loops, each_run


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


def runs_late(runs: Runs, slots: int) -> tuple[int, int]:
    """In step i + slots - 1 for run i."""
    return slots - 1, runs.number + slots - 1


RING = Loops(
    Loop(ring_read, {Named(Copy): each_run, Named(SyncEvent): runs_late}),
    Loop(ring_write, {Named(Copy): each_run, Named(SyncEvent): each_run}, (Named(SyncStream),)),
)
