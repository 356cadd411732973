"""No staging: each run goes straight between the pool and its own place in pinned memory; one wait for all."""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory
from ..language.edits import Named
from ..language.operations import Copy, Operation, SyncStream
from ..language.parameters import Distinct
from ..language.partitions import Runs
from ..language.scheme import Direction, Result, Scheme
from .base import STREAM, pool_of
from .loop import Loop, Loops, each_run


def direct_read(runs: Runs) -> Scheme:
    """Each run straight into its own place of the pinned result; one wait for all."""
    pool, out = pool_of(runs), Buffer("out", Memory.PINNED, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("direct read", (pool, out), runs.number, step, (SyncStream(STREAM),), result)


def direct_write(runs: Distinct[Runs]) -> Scheme:
    """Each run straight from its own place in the caller's pinned rows; one wait for all."""
    pool, rows = pool_of(runs), Buffer("rows", Memory.PINNED, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy(STREAM, rows.at(0, run.position, run.count), pool.at(run.slot, run.start, run.count))

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("direct write", (pool, rows), runs.number, step, (SyncStream(STREAM),), result)


_WAIT = (Named(SyncStream),)
DIRECT = Loops(Loop(direct_read, {Named(Copy): each_run}, _WAIT), Loop(direct_write, {Named(Copy): each_run}, _WAIT))
