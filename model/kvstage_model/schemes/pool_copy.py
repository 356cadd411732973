"""From pool to pool, whose blocks differ by a whole factor: a copy for every small block, and one wait."""

from collections.abc import Iterator

from ..language.buffers import Buffer
from ..language.edits import Named
from ..language.operations import Copy, Operation, SyncStream
from ..language.paged_rows import IntoLarger, IntoSmaller, PairedRows
from ..language.parameters import Distinct
from ..language.partitions import by_block
from ..language.scheme import Direction, Result, Scheme
from .base import STREAM
from .loop import Loop, Loops


def copy_read(rows: Distinct[IntoLarger]) -> Scheme:
    """From one pool into another one whose blocks are as large or larger: a copy for every small block, and one wait."""
    runs, pool, larger = by_block(rows.small), *_two_pools(rows)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        slot, start = rows.address(run.position)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), larger.at(slot, start, run.count))

    return Scheme("copy read", (pool, larger), runs.number, step, (SyncStream(STREAM),), _copied(Direction.READ, rows))


def copy_write(rows: Distinct[IntoSmaller]) -> Scheme:
    """From one pool into another one whose blocks are as large or smaller: a copy for every small block, and one wait."""
    runs, pool, larger = by_block(rows.small), *_two_pools(rows)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        slot, start = rows.address(run.position)
        yield Copy(STREAM, larger.at(slot, start, run.count), pool.at(run.slot, run.start, run.count))

    return Scheme("copy write", (pool, larger), runs.number, step, (SyncStream(STREAM),), _copied(Direction.WRITE, rows))


def _two_pools(rows: PairedRows) -> tuple[Buffer, Buffer]:
    """The pool with the smaller blocks, and the one with the larger ones: the host's, as a rule."""
    small = Buffer("pool", rows.small_memory, rows.small.num_blocks, rows.small.block_size)
    return small, Buffer("larger pool", rows.memory, rows.num_blocks, rows.block_size)


def _copied(direction: Direction, rows: PairedRows) -> Result:
    """Each row lies in both pools, at its address in each."""
    (pool, larger), runs = _two_pools(rows), by_block(rows.small)

    def first(i: int) -> int:
        return runs.part(i).position

    return Result(direction, pool, larger, runs.length, runs.address, runs.holder, host_address=rows.address, first=first)


def each_small_block(rows: PairedRows) -> tuple[int, int]:
    """In step i for the i-th of the smaller blocks that the rows touch."""
    return 0, by_block(rows.small).number


_WAIT = (Named(SyncStream),)
POOL_COPY = Loops(Loop(copy_read, {Named(Copy): each_small_block}, _WAIT), Loop(copy_write, {Named(Copy): each_small_block}, _WAIT))
