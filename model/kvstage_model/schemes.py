"""The schemes that keep nothing in flight but what one wait covers. `pipelines` has those that do.

The library runs these loops and the prover proves them: there is no other copy.
"""

from collections.abc import Iterator

from .buffers import Buffer, Memory, Paged
from .operations import Copy, Gather, HostCopy, Operation, Scatter, SyncStream
from .paired import IntoLarger, IntoSmaller, PairedRows
from .parameters import Distinct
from .runs import PagedRows, Piece, Pieces, Runs, by_block
from .scheme import Direction, Result, Scheme

STREAM = "copy"
"""The stream that the copies of a transfer are issued on."""


def pool_of(rows: Pieces[Piece] | PagedRows) -> Buffer:
    """The paged pool: a slot a block."""
    return Buffer("pool", Memory.DEVICE, rows.num_blocks, rows.block_size)


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


def gather_pinned_read(rows: PagedRows) -> Scheme:
    """One kernel that writes the pinned result itself, and one wait."""
    return _gathered("gather_pinned read", rows, Memory.PINNED)


def gather_pinned_write(rows: Distinct[PagedRows]) -> Scheme:
    """One kernel that reads the caller's pinned rows itself, and one wait."""
    return _scattered("gather_pinned write", rows, Memory.PINNED)


def gather_host_read(rows: PagedRows) -> Scheme:
    """One kernel that writes ordinary memory of the caller's, and one wait: for devices whose kernels reach it."""
    return _gathered("gather_host read", rows, Memory.PAGEABLE)


def gather_host_write(rows: Distinct[PagedRows]) -> Scheme:
    """One kernel that reads ordinary memory of the caller's, and one wait: for devices whose kernels reach it."""
    return _scattered("gather_host write", rows, Memory.PAGEABLE)


def gather_copy_read(pieces: Pieces[Piece]) -> Scheme:
    """A kernel packs a piece on the device, a copy moves it to its place in the pinned result; one wait for all.

    Both are on one stream, whose order keeps the packed rows until their copy has read them: a single slot is enough.
    """
    pool, out = pool_of(pieces), Buffer("out", Memory.PINNED, 1, pieces.length)
    packed = Buffer("packed", Memory.DEVICE, 1, pieces.longest)

    def step(i: int) -> Iterator[Operation]:
        piece = pieces.part(i)
        yield Gather(STREAM, Paged(pool, pieces, piece.position, piece.count), packed.at(0, 0, piece.count))
        yield Copy(STREAM, packed.at(0, 0, piece.count), out.at(0, piece.position, piece.count))

    result = Result(Direction.READ, pool, out, pieces.length, pieces.address, pieces.holder)
    return Scheme("gather_copy read", (pool, packed, out), pieces.number, step, (SyncStream(STREAM),), result)


def gather_copy_write(pieces: Distinct[Pieces[Piece]]) -> Scheme:
    """A copy moves a piece of the caller's pinned rows to the device, a kernel unpacks it there; one wait for all."""
    pool, rows = pool_of(pieces), Buffer("rows", Memory.PINNED, 1, pieces.length)
    packed = Buffer("packed", Memory.DEVICE, 1, pieces.longest)

    def step(i: int) -> Iterator[Operation]:
        piece = pieces.part(i)
        yield Copy(STREAM, rows.at(0, piece.position, piece.count), packed.at(0, 0, piece.count))
        yield Scatter(STREAM, packed.at(0, 0, piece.count), Paged(pool, pieces, piece.position, piece.count))

    result = Result(Direction.WRITE, pool, rows, pieces.length, pieces.address, pieces.holder)
    return Scheme("gather_copy write", (pool, packed, rows), pieces.number, step, (SyncStream(STREAM),), result)


def _gathered(name: str, rows: PagedRows, memory: Memory) -> Scheme:
    length = rows.stop - rows.start
    pool, out = pool_of(rows), Buffer("out", memory, 1, length)

    def step(_: int) -> Iterator[Operation]:
        yield Gather(STREAM, Paged(pool, rows, 0, length), out.at(0, 0, length))

    result = Result(Direction.READ, pool, out, length, rows.address, lambda _: 0)
    return Scheme(name, (pool, out), min(length, 1), step, (SyncStream(STREAM),), result)


def _scattered(name: str, rows: PagedRows, memory: Memory) -> Scheme:
    length = rows.stop - rows.start
    pool, source = pool_of(rows), Buffer("rows", memory, 1, length)

    def step(_: int) -> Iterator[Operation]:
        yield Scatter(STREAM, source.at(0, 0, length), Paged(pool, rows, 0, length))

    result = Result(Direction.WRITE, pool, source, length, rows.address, lambda _: 0)
    return Scheme(name, (pool, source), min(length, 1), step, (SyncStream(STREAM),), result)


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
