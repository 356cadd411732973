"""What every operation must keep to by itself: its rows lie inside their buffers, and it does not overlap itself."""

from collections.abc import Iterator
from itertools import combinations, product

from .buffers import Access, Memory, Paged, Rows, disjoint, overlap
from .contract import Clause
from .operations import Later, Launch, Operation, moves, reads, writes


def bounds(operation: Operation, row: int, other: int) -> Iterator[Clause]:
    """Each demand on one operation, read with ints and with symbols: for any two rows of what a kernel reaches.

    `row` and `other` count the rows of a `Paged` access from 0; other accesses don't look at them.
    """
    for access in (*reads(operation), *writes(operation)):
        yield from _inside(access, row)
    for source, target in moves(operation):
        yield Clause("source and target have as many rows", True, source.count == target.count)
    for first, second in combinations(writes(operation), 2):  # nothing orders the copies of a batch, or a kernel's threads
        (mine, reached), (other_rows, other_reached) = _some(first, row), _some(second, other)
        what = "what one kernel writes is" if isinstance(operation, Launch) else "the targets of one batch are"
        yield Clause(f"{what} disjoint", reached & other_reached, disjoint(mine, other_rows))
    for source, target in product(reads(operation), writes(operation)):
        if source.buffer.name == target.buffer.name and not (isinstance(operation, Launch) and operation.in_place):
            (mine, reached), (other_rows, other_reached) = _some(source, row), _some(target, other)
            apart = disjoint(mine, other_rows)
            if isinstance(operation, Launch):
                what = "what a kernel reads and what it writes are the same rows, or disjoint (unless it says in_place=True)"
                yield Clause(what, reached & other_reached, apart | _the_same(source, row, target, other))
            else:
                yield Clause("source and target are disjoint", reached & other_reached, apart)
    for target in writes(operation):
        if isinstance(target, Paged):
            two = (row >= 0) & (row < other) & (other < target.count)
            yield Clause(f"no row of {target.buffer.name} is written twice", two, disjoint(target.at(row), target.at(other)))


def unaddressed(operation: Operation) -> Iterator[Clause]:
    """The demand that the host touches no memory of the device, if an operation breaks it."""
    if not isinstance(operation, Later):
        for access in (*reads(operation), *writes(operation)):
            if access.buffer.memory is Memory.DEVICE:
                yield Clause(f"the host can address {access.buffer.name}, which is memory of the device", True, False)


def _inside(access: Access, row: int) -> Iterator[Clause]:
    name = access.buffer.name
    yield Clause(f"the count of rows of {name} is not negative", True, access.count >= 0)
    rows, reached = _some(access, row)
    last = rows.start + rows.count
    yield Clause(f"the slot of {name} exists", reached, (rows.slot >= 0) & (rows.slot < rows.buffer.slots))
    yield Clause(f"the rows of {name} lie inside its slot", reached, (rows.start >= 0) & (last <= rows.buffer.rows))


def _the_same(source: Access, row: int, target: Access, other: int) -> bool:
    """Whether a kernel reads and writes the very same rows, each in one place: a thread then reads what it writes itself."""
    as_many = source.count == target.count
    if isinstance(source, Rows) and isinstance(target, Rows):
        return as_many & (source.slot == target.slot) & (source.start == target.start)
    if isinstance(source, Rows) or isinstance(target, Rows):
        return as_many & False
    return as_many & (row == other) & overlap(_some(source, row)[0], _some(target, other)[0])


def _some(access: Access, row: int) -> tuple[Rows, bool]:
    """Rows of an access, and whether it reaches them: a run as it is, or one row of a kernel's."""
    if isinstance(access, Rows):
        return access, True
    reached = (row >= 0) & (row < access.count)
    if reached is False:  # of concrete rows: there may be no address to look up
        return access.buffer.at(0, 0, 0), reached
    return access.at(row), reached


def broken_bound(operation: Operation) -> str | None:
    """The first demand that a concrete operation does not meet, in words; None if it meets all."""
    most = max((access.count for access in (*reads(operation), *writes(operation)) if isinstance(access, Paged)), default=1)
    for row, other in product(range(max(1, most)), repeat=2):
        for clause in bounds(operation, row, other):
            if clause.premise and not clause.conclusion:
                return clause.name
    return None
