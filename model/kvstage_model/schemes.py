"""The schemes. The library runs these loops and the prover proves them: there is no other copy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .operations import Buffer, Copy, HostCopy, Memory, Operation, SyncStream
from .parameters import Distinct
from .runs import PagedRows, Runs, by_block, by_row
from .scheme import Direction, Result, Scheme

STREAM = "copy"
"""The stream that the copies of a transfer are issued on."""


def _pool(runs: Runs) -> Buffer:
    return Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)


def staged_read(runs: Runs) -> Scheme:
    """One staging buffer, used again for every run: copy, wait, take."""
    pool, stage = _pool(runs), Buffer("stage", Memory.PINNED, 1, runs.longest)
    out = Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.run(i)
        staged = stage.at(0, 0, run.count)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), staged)
        yield SyncStream(STREAM)
        yield HostCopy(staged, out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("staged read", (pool, stage, out), runs.number, step, result=result)


def staged_write(runs: Distinct[Runs]) -> Scheme:
    """One staging buffer, used again for every run: fill, copy, wait."""
    pool, stage = _pool(runs), Buffer("stage", Memory.PINNED, 1, runs.longest)
    rows = Buffer("rows", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.run(i)
        staged = stage.at(0, 0, run.count)
        yield HostCopy(rows.at(0, run.position, run.count), staged)
        yield Copy(STREAM, staged, pool.at(run.slot, run.start, run.count))
        yield SyncStream(STREAM)

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("staged write", (pool, stage, rows), runs.number, step, result=result)


def per_row_read(rows: PagedRows) -> Scheme:
    """A copy and a wait for every row: the loop that kvstage's users start from."""
    return staged_read(by_row(rows))


def per_row_write(rows: Distinct[PagedRows]) -> Scheme:
    """A copy and a wait for every row."""
    return staged_write(by_row(rows))


def per_block_read(rows: PagedRows) -> Scheme:
    """A copy and a wait for every block that the rows touch."""
    return staged_read(by_block(rows))


def per_block_write(rows: Distinct[PagedRows]) -> Scheme:
    """A copy and a wait for every block that the rows touch."""
    return staged_write(by_block(rows))


@dataclass(frozen=True)
class Pair:
    """The two directions of one scheme, as the library offers it by name."""

    read: Callable[[PagedRows], Scheme]
    write: Callable[[PagedRows], Scheme]


LIBRARY = {
    "per_row": Pair(per_row_read, per_row_write),
    "per_block": Pair(per_block_read, per_block_write),
}
"""What `Stager(device, scheme=NAME)` runs."""
