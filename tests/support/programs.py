"""Random programs and transfers for Hypothesis, and what a machine's log says about overlaps."""

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations

from hypothesis import assume
from hypothesis import strategies as st

from kvstage_model.language.buffers import Access, Buffer, Memory, Paged, Rows
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    Post,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
)
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import ELSEWHERE, Issued
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.simulation.machine import Machine

BUFFERS = (Buffer("left", Memory.PINNED, 2, 2), Buffer("right", Memory.PINNED, 2, 2))
STREAMS = ("one", "two")
EVENTS = (Event("done", 0), Event("done", 1))
MOST_OPERATIONS = 7
MOST_COPIES = 3
"""Three copies among seven operations: some ten thousand schedules at most."""

Log = list[tuple[object, Moment]]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Rows inside one of the two buffers."""
    buffer = draw(st.sampled_from(BUFFERS))
    start = draw(st.integers(0, buffer.rows - 1))
    return buffer.at(draw(st.integers(0, buffer.slots - 1)), start, draw(st.integers(1, buffer.rows - start)))


def operations() -> st.SearchStrategy[Operation]:
    """Any operation, copies more often than others."""
    copies = st.builds(Copy, st.sampled_from(STREAMS), rows(), rows())
    host = (st.builds(HostCopy, rows(), rows()), st.builds(HostRead, rows()), st.builds(HostWrite, rows()))
    return st.one_of(copies, copies, copies, *host, st.builds(SyncStream, st.sampled_from(STREAMS)))


def issued(operations: Sequence[Operation]) -> tuple[Issued, ...]:
    """A program of one call, one operation a step."""
    return tuple(Issued(0, "loop", step, operation) for step, operation in enumerate(operations))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Issued, ...]:
    """Short programs over two buffers and two streams, with a copy at least."""
    few = st.lists(operations(), min_size=3, max_size=MOST_OPERATIONS)
    return issued(draw(few.filter(lambda found: 1 <= sum(isinstance(operation, Copy) for operation in found) <= MOST_COPIES)))


@st.composite
def paged(draw: st.DrawFn) -> Paged:
    """One or two rows of a transfer whose three rows lie anywhere in one of the two buffers."""
    buffer = draw(st.sampled_from(BUFFERS))
    table = draw(st.lists(st.integers(0, buffer.slots - 1), min_size=2, max_size=2))
    start = draw(st.integers(0, 1))
    first = draw(st.integers(0, 2))
    transfer = PagedRows(total(table), buffer.slots, buffer.rows, start, start + 3)
    return Paged(buffer, transfer, first, draw(st.integers(1, 3 - first)))


NARROW = st.builds(Buffer.at, st.sampled_from(BUFFERS), st.just(0), st.integers(0, 1), st.just(1))
"""Few rows, so that many operations conflict."""


@st.composite
def kernels(draw: st.DrawFn) -> Launch:
    """A kernel with up to two accesses of each kind."""
    reached = st.lists(st.one_of(NARROW, NARROW, paged()), max_size=2).map(tuple)
    return Launch(draw(st.sampled_from(STREAMS)), draw(reached), draw(reached))


def operations_with_events() -> st.SearchStrategy[Operation]:
    """Any operation, records more often than others."""
    streams, events = st.sampled_from(STREAMS), st.sampled_from(EVENTS)
    record = st.builds(RecordEvent, events, streams)
    waits = (st.builds(WaitEvent, streams, events), st.builds(SyncEvent, events), st.builds(QueryEvent, events, st.just(1)))
    host = (st.builds(HostRead, NARROW), st.builds(HostWrite, NARROW), st.builds(SyncStream, streams))
    some = st.lists(NARROW, max_size=1).map(tuple)
    posted = (st.builds(Post, events, some, some), st.builds(Take, events))
    lent = (st.builds(Release, NARROW), st.builds(Acquire, st.one_of(NARROW, rows())), *posted)
    batch = st.builds(CopyBatch, streams, st.lists(st.tuples(NARROW, NARROW), min_size=1, max_size=2).map(tuple))
    return st.one_of(st.builds(Copy, streams, NARROW, NARROW), kernels(), *host, record, record, *waits, *lent, batch)


@st.composite
def handed_over(draw: st.DrawFn) -> list[Operation]:
    """Work of a stream, its record, a wait for it, and the use of what was written, by the host or on the other stream.

    Or rows that are lent to somebody else, taken back, and used.
    """
    (stream, other), event, cell = draw(st.permutations(STREAMS)), draw(st.sampled_from(EVENTS)), draw(NARROW)
    work = draw(
        st.sampled_from((Copy(stream, draw(NARROW), cell), Launch(stream, (), (cell,)), CopyBatch(stream, ((draw(NARROW), cell),))))
    )
    host_uses = draw(st.sampled_from((HostRead(cell), HostWrite(cell))))
    by_host = [draw(st.sampled_from((SyncEvent(event), QueryEvent(event, 1)))), host_uses]
    by_stream = [WaitEvent(other, event), draw(st.sampled_from((Launch(other, (cell,)), Copy(other, cell, draw(NARROW)))))]
    if draw(st.integers(0, 5)) == 0:
        away = Post(event, *draw(st.sampled_from((((cell,), ()), ((), (cell,))))))
        return draw(st.sampled_from(([Release(cell), Acquire(cell), host_uses], [away, Take(event), host_uses])))
    return [work, RecordEvent(event, stream), *draw(st.sampled_from((by_host, by_stream)))]


@st.composite
def programs_with_events(draw: st.DrawFn) -> tuple[Issued, ...]:
    """Rows handed over, with other operations in between, or an operation lost; up to three of them asynchronous."""
    chosen = draw(handed_over())
    for _ in range(draw(st.integers(0, 5))):
        chosen.insert(draw(st.integers(0, len(chosen))), draw(operations_with_events()))
    if draw(st.booleans()):
        del chosen[draw(st.integers(0, len(chosen) - 1))]
    later = Copy | Launch | CopyBatch | Release | Post
    assume(1 <= sum(isinstance(operation, later) for operation in chosen) <= MOST_COPIES)
    return issued(chosen)


@st.composite
def transfers(draw: st.DrawFn) -> tuple[PagedRows, tuple[int, ...]]:
    """A transfer and its block table: any block size up to 5, history up to 12 rows, length from 0 to 12."""
    block_size, start, length = draw(st.integers(1, 5)), draw(st.integers(0, 12)), draw(st.integers(0, 12))
    num_blocks = draw(st.integers(1, 8))
    table = tuple(draw(st.lists(st.integers(0, num_blocks - 1), min_size=25, max_size=25)))
    return PagedRows(total(table), num_blocks, block_size, start, start + length), table


def without(program: Sequence[Issued], *kinds: type) -> tuple[Issued, ...]:
    """The same program, operations of some kinds taken out."""
    return issued([each.operation for each in program if not isinstance(each.operation, kinds)])


def total(table: Sequence[int]) -> Callable[[int], int]:
    """A table that also answers where it has no entry, with a block that no pool has."""
    return lambda k: table[k] if 0 <= k < len(table) else -1000


def run(program: Sequence[Issued], schedule: Schedule) -> Log:
    """The log of a program on a machine without memory; labels are the operations' numbers."""
    machine = Machine(schedule)
    lent: dict[int, Release] = {}
    posted: dict[Hashable, list[int]] = {}
    returned: set[int] = set()
    for index, issued in enumerate(program):
        match issued.operation:
            case Copy(stream) | Launch(stream) | Gather(stream) | Scatter(stream) | CopyBatch(stream):
                machine.issue(stream, lambda half: None, index)
            case Release() as release:
                lent[index] = release
                machine.issue(f"{ELSEWHERE} {index}", lambda half, index=index: returned.update([index] * half), index)
            case Post(event):
                posted.setdefault(named(event), []).append(index)
                machine.issue(f"{ELSEWHERE} {index}", lambda half, index=index: returned.update([index] * half), index)
            case Take(event):
                taken = set(posted.get(named(event), ()))
                machine.block(lambda taken=taken: taken <= returned, index)
            case Acquire(target):
                taken = {number for number, release in lent.items() if cells(release.target) <= cells(target)}
                machine.block(lambda taken=taken: taken <= returned, index)
            case QueryEvent(event, 1):
                machine.synchronize_event(named(event), index)
            case SyncStream(stream):
                machine.synchronize(stream, index)
            case RecordEvent(event, stream):
                machine.record(named(event), stream, index)
            case WaitEvent(stream, event):
                machine.wait_event(stream, named(event), index)
            case SyncEvent(event):
                machine.synchronize_event(named(event), index)
            case _:
                machine.host(lambda: None, index)
    machine.drain()
    return machine.log


def named(event: Event) -> Hashable:
    """What makes two events one."""
    return event.name, event.index, event.call


def overlapping(program: Sequence[Issued], log: Log) -> set[tuple[int, int]]:
    """Pairs of operations with a conflict whose times overlap in a log; found cell by cell, without the axioms."""
    at = {entry: place for place, entry in enumerate(log)}
    found = set()
    for first, second in combinations(range(len(program)), 2):
        together = at[first, Moment.BEGIN] < at[second, Moment.END] and at[second, Moment.BEGIN] < at[first, Moment.END]
        if together and _conflict(program[first].operation, program[second].operation):
            found.add((first, second))
    return found


def _conflict(first: Operation, second: Operation) -> bool:
    return bool(_written(first) & (_read(second) | _written(second)) or _read(first) & _written(second))


def _read(operation: Operation) -> set[tuple[str, int, int]]:
    if isinstance(operation, Launch | Post):
        return set().union(*map(cells, operation.reads))
    if isinstance(operation, CopyBatch):
        return set().union(*(cells(source) for source, _ in operation.copies))
    return cells(operation.source) if isinstance(operation, Copy | Gather | Scatter | HostCopy | HostRead) else set()


def _written(operation: Operation) -> set[tuple[str, int, int]]:
    if isinstance(operation, Launch | Post):
        return set().union(*map(cells, operation.writes))
    if isinstance(operation, CopyBatch):
        return set().union(*(cells(target) for _, target in operation.copies))
    return cells(operation.target) if isinstance(operation, Copy | Gather | Scatter | HostCopy | HostWrite | Release) else set()


def cells(access: Access) -> set[tuple[str, int, int]]:
    """The rows as a set: buffer, slot, row."""
    if isinstance(access, Rows):
        return {(access.buffer.name, access.slot, access.start + k) for k in range(access.count)}
    assert isinstance(access.rows, PagedRows)
    table, size = access.rows.table, access.rows.block_size
    moved = range(access.rows.start + access.first, access.rows.start + access.first + access.count)
    return {(access.buffer.name, table(row // size), row % size) for row in moved}
