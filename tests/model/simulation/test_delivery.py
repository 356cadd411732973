"""What a call must deliver and must leave alone, judged on labelled memory."""

import pytest

from kvstage_model.language.buffers import Buffer, Memory, Paged
from kvstage_model.language.operations import Copy, Gather, HostCopy, HostRead, HostWrite, Operation, Scatter, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.simulation.cells import BoundsError
from kvstage_model.simulation.simulator import simulate

POOL, OUT = Buffer("pool", Memory.DEVICE, 2, 1), Buffer("out", Memory.PAGEABLE, 1, 1)


BOTH = Buffer("both", Memory.PINNED, 1, 2).at(0, 0, 2)
TWO, TWICE, LESS = (
    Paged(POOL, PagedRows(table.__getitem__, 2, 1, 0, 2), 0, count) for table, count in (((1, 5), 2), ((1, 1), 2), ((0, 1), -1))
)
"""Rows of blocks 1 and 5, of block 1 twice, and less than none."""


def one_row(direction: Direction, *operations: Operation) -> Scheme:
    """A call that moves row 0 of slot 0, or says so."""
    result = Result(direction, POOL, OUT, 1, lambda position: (0, position), lambda position: 0)
    return Scheme("one row", (POOL, OUT), 1, lambda i: operations, result=result)


def wrong(calls: list[Scheme]) -> list[str]:
    """What a judge finds in issue order, in words."""
    return [str(each) for each in simulate(calls, IssueOrder()).wrong]


def test_a_pool_row_outside_the_transfer_must_not_change() -> None:
    right = Copy("one", OUT.at(0, 0, 1), POOL.at(0, 0, 1)), SyncStream("one")
    stray = HostCopy(POOL.at(0, 0, 1), POOL.at(1, 0, 1))
    assert wrong([one_row(Direction.WRITE, *right)]) == []
    found = "call 0: a row that the call must not touch, at pool[1].rows[0:1], holds row 0"
    bad = one_row(Direction.WRITE, *right, stray)
    assert wrong([bad]) == [found]
    assert wrong([bad, one_row(Direction.WRITE, *right)]) == [found], "each call is judged, not the last one alone"


def test_a_read_must_not_change_the_pool() -> None:
    right = Copy("one", POOL.at(0, 0, 1), OUT.at(0, 0, 1)), SyncStream("one")
    assert wrong([one_row(Direction.READ, *right)]) == [], "the caller may overwrite what was read"
    (found,) = wrong([one_row(Direction.READ, *right, HostWrite(POOL.at(1, 0, 1)))])
    assert found.endswith("at pool[1].rows[0:1], holds what pool[1].rows[0:1] held after operation 2")


def test_a_second_call_does_not_take_the_first_ones_rows() -> None:
    right = one_row(Direction.READ, Copy("one", POOL.at(0, 0, 1), OUT.at(0, 0, 1)), SyncStream("one"))
    idle = one_row(Direction.READ, SyncStream("one"))
    (found,) = wrong([right, idle])
    assert found == "call 1: row 0, at out[0].rows[0:1], holds what pool[0].rows[0:1] held at the start"


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (HostRead(POOL.at(2, 0, 1)), r"step 0: HostRead pool\[2\].rows\[0:1\]: .* is not inside pool, which has 2 slots of 1 rows"),
        (HostRead(POOL.at(-1, 0, 1)), "is not inside pool"),
        (HostRead(POOL.at(0, -1, 1)), "is not inside pool"),
        (HostWrite(POOL.at(0, 0, 2)), "is not inside pool"),
        (HostWrite(POOL.at(0, 1, -1)), "is not inside pool"),
        (Gather("one", TWO, BOTH), r"pool\[5\].rows\[0:1\] is not inside pool, which has 2 slots of 1 rows"),  # the row that is
        (Scatter("one", BOTH, TWICE), "not so: no row of pool is written twice"),
        (Scatter("one", BOTH, LESS), "not so: the count of rows of pool is not negative"),
        (Copy("one", POOL.at(0, 0, 1), OUT.at(0, 0, 0)), "on stream one: not so: source and target have as many rows"),
    ],
)
def test_an_operation_outside_its_buffers_is_refused(operation: Operation, message: str) -> None:
    scheme = Scheme("loose", (POOL, OUT), 1, lambda i: [operation])
    with pytest.raises(BoundsError, match=message):
        simulate([scheme], IssueOrder())
