"""Random programs and transfers for Hypothesis, and what a machine's log says about overlaps."""

from collections.abc import Callable, Sequence
from itertools import combinations

from hypothesis import strategies as st

from kvstage_model.axioms import Moment
from kvstage_model.machine import Machine
from kvstage_model.operations import Buffer, Copy, HostCopy, HostRead, HostWrite, Memory, Operation, Rows, SyncStream
from kvstage_model.runs import PagedRows
from kvstage_model.schedules import Schedule
from kvstage_model.trace import Issued

BUFFERS = (Buffer("left", Memory.PINNED, 2, 2), Buffer("right", Memory.PINNED, 2, 2))
STREAMS = ("one", "two")
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
def transfers(draw: st.DrawFn) -> tuple[PagedRows, tuple[int, ...]]:
    """A transfer and its block table: any block size up to 5, history up to 12 rows, length from 0 to 12."""
    block_size, start, length = draw(st.integers(1, 5)), draw(st.integers(0, 12)), draw(st.integers(0, 12))
    num_blocks = draw(st.integers(1, 8))
    table = tuple(draw(st.lists(st.integers(0, num_blocks - 1), min_size=25, max_size=25)))
    return PagedRows(total(table), num_blocks, block_size, start, start + length), table


def without_waits(program: Sequence[Issued]) -> tuple[Issued, ...]:
    """The same program, its waits taken out."""
    return issued([each.operation for each in program if not isinstance(each.operation, SyncStream)])


def total(table: Sequence[int]) -> Callable[[int], int]:
    """A table that also answers where it has no entry, with a block that no pool has."""
    return lambda k: table[k] if 0 <= k < len(table) else -1000


def run(program: Sequence[Issued], schedule: Schedule) -> Log:
    """The log of a program on a machine without memory; labels are the operations' numbers."""
    machine = Machine(schedule)
    for index, issued in enumerate(program):
        operation = issued.operation
        if isinstance(operation, Copy):
            machine.issue(operation.stream, lambda half: None, index)
        elif isinstance(operation, SyncStream):
            machine.synchronize(operation.stream, index)
        else:
            machine.host(lambda: None, index)
    machine.drain()
    return machine.log


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
    return cells(operation.source) if isinstance(operation, Copy | HostCopy | HostRead) else set()


def _written(operation: Operation) -> set[tuple[str, int, int]]:
    return cells(operation.target) if isinstance(operation, Copy | HostCopy | HostWrite) else set()


def cells(rows: Rows) -> set[tuple[str, int, int]]:
    """The rows as a set: buffer, slot, row."""
    return {(rows.buffer.name, rows.slot, rows.start + k) for k in range(rows.count)}
