"""One staging buffer, and a synchronize for each run: nothing is in flight while the host touches the buffer.

The library runs this loop and the prover proves it: there is no other copy.
"""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory
from ..language.edits import Named
from ..language.operations import Copy, HostCopy, Operation, SyncStream
from ..language.parameters import Distinct
from ..language.partitions import Runs
from ..language.scheme import Direction, Result, Scheme
from .base import STREAM, pool_of
from .loop import Loop, Loops, each_run


def staged_read(runs: Runs) -> Scheme:
    """One staging buffer, used again for every run: copy, wait, take."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PINNED, 1, runs.longest)
    out = Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        staged = stage.at(0, 0, run.count)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), staged)
        yield SyncStream(STREAM)
        yield HostCopy(staged, out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("staged read", (pool, stage, out), runs.number, step, result=result)


def staged_write(runs: Distinct[Runs]) -> Scheme:
    """One staging buffer, used again for every run: fill, copy, wait."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PINNED, 1, runs.longest)
    rows = Buffer("rows", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        staged = stage.at(0, 0, run.count)
        yield HostCopy(rows.at(0, run.position, run.count), staged)
        yield Copy(STREAM, staged, pool.at(run.slot, run.start, run.count))
        yield SyncStream(STREAM)

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("staged write", (pool, stage, rows), runs.number, step, result=result)


_EACH = {Named(Copy): each_run, Named(SyncStream): each_run}
STAGED = Loops(Loop(staged_read, _EACH), Loop(staged_write, _EACH))
