"""Loops with more than copies and waits: free flags that are asked for, batches of copies, rows lent to another party.

Each stands for a pattern of serving engines, and each has the mistake that is made in it.
"""

from collections.abc import Iterator

from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    HostCopy,
    HostWrite,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncStream,
)
from kvstage_model.language.parameters import Distinct
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import Flags, Positive
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schemes.base import STREAM, pool_of

from ..obligation import Obligation, Verdict
from ..theorems.t1_no_hazard import T1
from ..theorems.t3_result import T3
from ..theorems.t5_removals import removals

POLLING, BATCHES, LENT = "ring that asks for free slots", "batches of two runs", "slots lent to somebody else"


def polling_write(runs: Distinct[Runs], slots: Positive, free: Flags) -> Scheme:
    """A ring whose host asks whether the slot is free, and waits for the whole stream only if it is not yet."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PINNED, slots, runs.longest)
    rows = Buffer("rows", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run, slot = runs.part(i), i % slots
        yield QueryEvent(Event("sent", slot), free(i))
        if free(i) == 0:
            yield SyncStream(STREAM)
        yield HostCopy(rows.at(0, run.position, run.count), stage.at(slot, 0, run.count))
        yield Copy(STREAM, stage.at(slot, 0, run.count), pool.at(run.slot, run.start, run.count))
        yield RecordEvent(Event("sent", slot), STREAM)

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("polling write", (pool, stage, rows), runs.number, step, (SyncStream(STREAM),), result)


def batched_read(runs: Runs) -> Scheme:
    """Two runs in one call of the driver, each straight into its place; one wait for all."""
    pool, out = pool_of(runs), Buffer("out", Memory.PINNED, 1, runs.length)

    def ends(i: int) -> tuple[Rows, Rows]:
        run = runs.part(i)
        return pool.at(run.slot, run.start, run.count), out.at(0, run.position, run.count)

    def step(i: int) -> Iterator[Operation]:
        if 2 * i + 1 < runs.number:
            yield CopyBatch(STREAM, (ends(2 * i), ends(2 * i + 1)))
        else:
            yield CopyBatch(STREAM, (ends(2 * i),))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, lambda position: runs.holder(position) // 2)
    return Scheme("batched read", (pool, out), (runs.number + 1) // 2, step, (SyncStream(STREAM),), result)


def lent_ring(slots: Positive, turns: Positive) -> Scheme:
    """Slots of host memory are filled, copied, and then lent to another party, which may write them until they are taken back."""
    device = Buffer("device", Memory.DEVICE, turns, 1)
    stage = Buffer("stage", Memory.PINNED, slots, 1)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(stage.at(i % slots, 0, 1))
        yield HostWrite(stage.at(i % slots, 0, 1))
        yield Copy(STREAM, stage.at(i % slots, 0, 1), device.at(i, 0, 1))
        yield SyncStream(STREAM)
        yield Release(stage.at(i % slots, 0, 1))

    return Scheme("lent ring", (device, stage), turns, step)


def obligations() -> Iterator[Obligation]:
    """The loops that hold, and each with its mistakes: without the wait in its loop, the polling ring asks and goes on."""
    for theorem in (T1, T3):
        yield theorem.of(polling_write, POLLING, "write")
        yield theorem.of(batched_read, BATCHES, "read")
    yield T1.of(lent_ring, LENT)
    yield from removals(polling_write, POLLING, "write")
    yield from removals(batched_read, BATCHES, "read")
    yield from removals(lent_ring, LENT, "-")
    yield T1.of(edited(lent_ring, without(Named(Acquire))), "slots lent and never taken back", expected=Verdict.REFUTED)
