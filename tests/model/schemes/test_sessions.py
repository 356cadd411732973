"""Sessions: turns of an engine that reads and writes through one ring, between kernels of its own."""

from itertools import product

import pytest

from kvstage_model.language.edits import orderings, without
from kvstage_model.language.operations import Copy, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Runs, by_block, by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schemes.sessions import batch_session, ring_session, ring_session_on_two_streams

SESSIONS = (ring_session, ring_session_on_two_streams)
FORTH, BACK = (PagedRows(table.__getitem__, 3, 2, 1, 5) for table in ((0, 1, 2), (2, 1, 0)))
"""Four rows of three blocks, in the order of the pool and against it."""


def racy(*turns: Scheme) -> bool:
    return next(races(unroll(turns)), None) is not None


@pytest.mark.parametrize("session", SESSIONS)
def test_turns_follow_each_other_without_a_race(session: type) -> None:
    """Whatever is read and written, in runs of other lengths, in each order, through few slots and many."""
    parts: list[tuple[Runs, Runs]] = [
        (by_row(FORTH), by_row(BACK)),
        (by_block(FORTH), by_block(FORTH)),
        (by_block(BACK), by_block(FORTH)),
    ]
    tried = 0
    for (reads, writes), slots in product(parts, (1, 2, 3, 5)):
        turn = session(reads, writes, slots)
        assert not racy(turn, turn, turn)
        tried += sum(isinstance(each.operation, Copy) for each in unroll([turn]))
    assert tried > 50


@pytest.mark.parametrize("session", SESSIONS)
def test_each_edge_of_a_session_is_needed(session: type) -> None:
    """Every wait and record of the turn, those of the ring and those of the caller, in two turns through two slots."""
    turn = session(by_row(FORTH), by_row(BACK), 2)
    named = orderings(turn)
    assert {name.kind for name in named} >= {RecordEvent, SyncEvent, WaitEvent}
    assert len(named) >= 10
    needless = [str(name) for name in named if not racy(without(name)(turn), without(name)(turn))]
    assert needless == []


@pytest.mark.parametrize("cut", [by_row, by_block])
def test_calls_of_a_batch_follow_each_other_with_one_wait(cut: type) -> None:
    """A write and a read of the very blocks that it wrote, both under way, twice."""
    turn = batch_session(cut(FORTH), cut(BACK))
    issued = [each.operation for each in unroll([turn])]
    assert sum(isinstance(each, SyncEvent) for each in issued) == 1
    assert sum(isinstance(each, Copy) for each in issued) == 2 * cut(FORTH).number >= 6
    assert not racy(turn, turn)
    needless = [str(name) for name in orderings(turn) if not racy(without(name)(turn), without(name)(turn))]
    assert needless == []
