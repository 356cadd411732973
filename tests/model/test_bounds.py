"""Bounds, against the sets of cells that an operation touches."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.bounds import bounds
from kvstage_model.operations import Buffer, Copy, HostCopy, HostRead, HostWrite, Memory, Operation, Rows, SyncStream
from tests.model.programs import cells

SMALL = Buffer("small", Memory.PINNED, 2, 3)
LARGE = Buffer("large", Memory.PINNED, 3, 4)


def broken(operation: Operation, row: int = 0, other: int = 0) -> list[str]:
    return [clause.name for clause in bounds(operation, row, other) if clause.premise and not clause.conclusion]


def inside(rows: Rows) -> bool:
    """All cells are among the buffer's; an empty run must lie inside too, and no count is negative."""
    every = {(rows.buffer.name, slot, row) for slot in range(rows.buffer.slots) for row in range(rows.buffer.rows)}
    edges = 0 <= rows.slot < rows.buffer.slots and 0 <= rows.start <= rows.buffer.rows
    return rows.count >= 0 and edges and cells(rows) <= every


def any_rows() -> st.SearchStrategy[Rows]:
    inside = st.sampled_from((0, 0, 1, 1, 2, 3, -1, 5))
    return st.builds(
        Rows, st.sampled_from((SMALL, LARGE)), st.sampled_from((0, 0, 0, 1, 2, -1)), inside, st.sampled_from((1, 1, 2, 3, 4, -1))
    )


def test_a_run_is_inside_where_all_its_cells_are() -> None:
    seen: Counter[bool] = Counter()
    for slot, start, count in product(range(-1, 4), range(-1, 6), range(-1, 6)):
        rows = SMALL.at(slot, start, count)
        assert (not broken(HostRead(rows))) == inside(rows)
        assert (not broken(HostWrite(rows))) == inside(rows)
        seen[inside(rows)] += 1
    assert min(seen.values()) > 10


def test_a_copy_is_whole_where_both_sides_are_equally_long_inside_and_disjoint() -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(any_rows(), any_rows(), st.booleans())
    def agree(source: Rows, target: Rows, same_length: bool) -> None:
        target = target.buffer.at(target.slot, target.start, source.count) if same_length else target
        whole = inside(source) and inside(target) and source.count == target.count and not cells(source) & cells(target)
        for operation in (Copy("a", source, target), HostCopy(source, target)):
            assert (not broken(operation)) == whole
        seen[whole] += 1

    agree()
    assert min(seen[True], seen[False]) > 20


@pytest.mark.parametrize(
    ("rows", "demand"),
    [
        (SMALL.at(2, 0, 1), "the slot of small exists"),
        (SMALL.at(-1, 0, 1), "the slot of small exists"),
        (SMALL.at(0, 0, -1), "the count of rows of small is not negative"),
        (SMALL.at(0, 2, 2), "the rows of small lie inside its slot"),
        (SMALL.at(0, -1, 1), "the rows of small lie inside its slot"),
    ],
)
def test_each_demand_is_named(rows: Rows, demand: str) -> None:
    assert broken(HostRead(rows)) == [demand]


def test_a_copy_onto_itself_and_one_of_two_lengths_are_named() -> None:
    assert broken(Copy("a", LARGE.at(0, 0, 2), LARGE.at(0, 1, 2))) == ["source and target are disjoint"]
    assert broken(Copy("a", LARGE.at(0, 0, 2), SMALL.at(0, 0, 1))) == ["source and target have as many rows"]
    assert broken(Copy("a", LARGE.at(0, 0, 2), LARGE.at(1, 1, 2))) == []
    assert broken(SyncStream("a")) == []
