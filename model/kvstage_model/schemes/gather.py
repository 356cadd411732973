"""Kernels that pack rows of the pool, or unpack them: into the result itself, through one device slot, or through two rings."""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory, Paged
from ..language.edits import Named
from ..language.operations import Copy, Event, Gather, HostCopy, Operation, RecordEvent, Scatter, SyncEvent, SyncStream, WaitEvent
from ..language.paged_rows import PagedRows
from ..language.parameters import Distinct
from ..language.partitions import Piece, Pieces
from ..language.ranges import Positive
from ..language.scheme import Direction, Result, Scheme
from .base import COMPUTE, STREAM, pool_of
from .loop import Loop, Loops, each_piece


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


def gather_read(pieces: Pieces[Piece], device_slots: Positive, pinned_slots: Positive) -> Scheme:
    """A kernel packs a piece into a device slot, a copy moves it to a pinned slot, the host takes it late.

    The event `free` is needed if there are fewer device slots than pinned ones, and only then: else the host took the
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


def once(rows: PagedRows) -> tuple[int, int]:
    """In one step, if there is a row at all."""
    return 0, min(1, rows.stop - rows.start)


def pieces_late(pieces: Pieces[Piece], device_slots: int, pinned_slots: int) -> tuple[int, int]:
    """In step i + pinned_slots - 1 for piece i."""
    return pinned_slots - 1, pieces.number + pinned_slots - 1


_WAIT = (Named(SyncStream),)
_KERNEL_AND_COPY = {Named(Gather): each_piece, Named(Copy): each_piece}
_COPY_AND_KERNEL = {Named(Copy): each_piece, Named(Scatter): each_piece}

GATHER_PINNED = Loops(
    Loop(gather_pinned_read, {Named(Gather): once}, _WAIT), Loop(gather_pinned_write, {Named(Scatter): once}, _WAIT)
)
GATHER_HOST = Loops(Loop(gather_host_read, {Named(Gather): once}, _WAIT), Loop(gather_host_write, {Named(Scatter): once}, _WAIT))
GATHER_COPY = Loops(Loop(gather_copy_read, _KERNEL_AND_COPY, _WAIT), Loop(gather_copy_write, _COPY_AND_KERNEL, _WAIT))
GATHER = Loops(
    Loop(gather_read, {**_KERNEL_AND_COPY, Named(SyncEvent): pieces_late}),
    Loop(gather_write, {**_COPY_AND_KERNEL, Named(SyncEvent): each_piece}, _WAIT),
)
