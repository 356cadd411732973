"""Races are looked for where rows were touched: every pair of conflicting accesses must be found that a look at all pairs finds."""

from itertools import combinations, product

from hypothesis import given, settings

from kvstage_model.language.buffers import Buffer, Memory, overlap, parts
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, Race, conflicts, races
from kvstage_model.ordering.touched_rows import TouchedRows
from tests.support.programs import programs_with_events

ROWS = Buffer("rows", Memory.DEVICE, 2, 16)


def by_all_pairs(program: tuple[Issued, ...]) -> set[Race]:
    order = HappensBefore(program)
    if not order.possible:
        return set()
    found = set()
    for first, second in combinations(range(len(program)), 2):
        accesses = conflicts(program[first].operation, program[second].operation)
        meet = any(overlap(mine, other) for pair in accesses for mine, other in product(parts(pair[0]), parts(pair[1])))
        if meet and not order.apart(first, second):
            found.add(Race(first, second))
    return found


def test_a_look_at_all_pairs_finds_no_more() -> None:
    seen = set[bool]()

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(programs_with_events())
    def same(program: tuple[Issued, ...]) -> None:
        found = by_all_pairs(program)
        assert set(races(program)) == found
        seen.add(bool(found))

    same()
    assert seen == {False, True}


def test_pieces_are_cut_where_accesses_begin_and_end() -> None:
    touched = TouchedRows()
    touched.add(ROWS.at(0, 0, 8), True, 0, 1)
    touched.add(ROWS.at(0, 4, 8), False, 1, 2)
    assert list(touched.of(ROWS.at(0, 0, 4), False)) == [(1, None)]
    assert sorted(touched.of(ROWS.at(0, 7, 1), True)) == [(1, None), (2, None)]
    assert list(touched.of(ROWS.at(0, 8, 4), False)) == [], "a read does not conflict with a read"
    assert list(touched.of(ROWS.at(0, 12, 4), True)) == []
    assert list(touched.of(ROWS.at(1, 0, 8), True)) == [], "another slot"


def test_the_latest_comes_first_and_no_rows_touch_nothing() -> None:
    touched = TouchedRows()
    for number in range(3):
        touched.add(ROWS.at(0, number, 4), True, 0, number)
    touched.add(ROWS.at(0, 3, 0), True, 0, 9)
    assert list(touched.of(ROWS.at(0, 3, 1), False)) == [(2, (1, (0, None)))]
    assert list(touched.of(ROWS.at(0, 3, 0), True)) == []
