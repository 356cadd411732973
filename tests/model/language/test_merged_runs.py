"""Merged runs against a plain loop over rows, and against the contract of a partition."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.language.contract import contract, distinct
from kvstage_model.language.merged_runs import joined, joins, merged
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Run


@st.composite
def transfers(draw: st.DrawFn) -> PagedRows:
    """A transfer in a pool of up to 8 blocks; tables with many neighbours, no block twice."""
    size, start, length = draw(st.integers(1, 4)), draw(st.integers(0, 5)), draw(st.integers(0, 14))
    used = (start + length - 1) // size + 1 if length else 0
    first = draw(st.integers(0, 3))
    table = draw(st.one_of(st.just(list(range(first, first + used))), st.permutations(range(used))))
    return PagedRows(table.__getitem__, used + 3, size, start, start + length)


def places(rows: PagedRows) -> list[int]:
    """Where each row of the transfer lies in the pool of one slot, by the definition of a block table."""
    found = []
    for row in range(rows.start, rows.stop):
        block, within = rows.table(row // rows.block_size), row % rows.block_size
        found.append(block * rows.block_size + within)
    return found


@settings(max_examples=300, deadline=None, derandomize=True)
@given(transfers(), st.integers(1, 12))
def test_merged_runs_list_the_rows_in_order_and_fulfil_the_contract(rows: PagedRows, most: int) -> None:
    runs = merged(rows, most)
    parts = [runs.part(i) for i in range(runs.number)]
    assert [part.start + r for part in parts for r in range(part.count)] == places(rows)
    assert all(part.count <= max(most, rows.block_size) for part in parts)
    every = range(runs.number)
    for i, j, p, q in product(every, every, range(runs.length), range(min(2, runs.length))):
        for clause in (*contract(runs, i, j, p), *distinct(runs, i, j, p, q)):
            assert clause.conclusion or not clause.premise, clause.name


@settings(max_examples=200, deadline=None, derandomize=True)
@given(transfers())
def test_without_a_limit_there_is_one_run_for_each_stretch(rows: PagedRows) -> None:
    where = places(rows)
    stretches = sum(1 for i, place in enumerate(where) if i == 0 or place != where[i - 1] + 1)
    assert merged(rows, len(where) + 1).number == stretches


def test_a_sequence_in_order_is_one_run() -> None:
    rows = PagedRows([3, 4, 5].__getitem__, 8, 2, 1, 6)
    runs = merged(rows, 100)
    assert runs.number == 1
    assert (runs.part(0).start, runs.part(0).count) == (7, 5)


LAST, NEXT = Run(0, 2, 0, 4), Run(2, 3, 0, 6)


def test_neighbours_join() -> None:
    assert joins(LAST, NEXT, 5)
    both = joined(LAST, NEXT)
    assert (both.position, both.count, both.slot, both.start) == (0, 5, 0, 4)


@pytest.mark.parametrize(
    ("following", "most"),
    [(NEXT, 4), (replace(NEXT, start=7), 5), (replace(NEXT, position=3), 5), (replace(NEXT, slot=1), 5)],
    ids=["too long", "elsewhere in the pool", "a gap in the transfer", "another slot"],
)
def test_others_do_not(following: Run, most: int) -> None:
    assert not joins(LAST, following, most)
