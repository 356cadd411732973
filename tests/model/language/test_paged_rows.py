"""Rows in two pools: the address in the larger one against its definition, and what the search makes of them."""

from itertools import combinations_with_replacement, product

import pytest

from kvstage_model.language.paged_rows import IntoLarger, IntoSmaller, PagedRows, PairedRows
from kvstage_model.language.parameters import allowing_duplicates, declared
from kvstage_model.language.partitions import by_block
from kvstage_model.schemes.pool_copy import copy_read, copy_write
from kvstage_model.search.faults import wrong_rows
from kvstage_model.search.instances import small_pairs, small_values
from kvstage_model.search.search import search
from kvstage_model.search.wording import value_in_words

SMALL, LARGER = (7, 3, 9, 1, 4, 8, 2, 6), (5, 0, 3, 2, 6, 1, 7, 4)


def pair(size: int, factor: int, start: int, stop: int) -> PairedRows:
    return PairedRows(PagedRows(SMALL.__getitem__, 10, size, start, stop), LARGER.__getitem__, 8, factor)


@pytest.mark.parametrize(("size", "factor"), [*product((1, 2, 3), (1, 2, 3, 4))])
def test_a_row_lies_where_blocks_of_the_larger_size_put_it(size: int, factor: int) -> None:
    larger, rows = size * factor, 8 * size
    assert pair(size, factor, 0, rows).block_size == larger
    for start in range(rows):
        found = [pair(size, factor, start, rows).address(position) for position in range(rows - start)]
        assert found == [(LARGER[row // larger], row % larger) for row in range(start, rows)]


@pytest.mark.parametrize(("size", "factor"), [*product((1, 2), (1, 2, 3))])
def test_it_touches_the_larger_blocks_that_hold_a_row_of_it(size: int, factor: int) -> None:
    rows = 5 * size
    for start, stop in combinations_with_replacement(range(rows + 1), 2):
        touched = {row // (size * factor) for row in range(start, stop)}
        assert {k for k in range(-1, 9) if pair(size, factor, start, stop).touches(k)} == touched


def test_a_run_of_a_small_block_lies_side_by_side_in_the_larger_one() -> None:
    """What makes one copy of it right."""
    both = pair(3, 2, 2, 20)
    runs = by_block(both.small)
    for run in (runs.part(i) for i in range(runs.number)):
        slot, start = both.address(run.position)
        assert [both.address(run.position + k) for k in range(run.count)] == [(slot, start + k) for k in range(run.count)]


@pytest.mark.parametrize(("function", "kind"), [(copy_read, IntoLarger), (copy_write, IntoSmaller)])
def test_small_instances_have_both_factors_and_distinct_tables_where_they_are_promised(function, kind) -> None:
    values = [value["rows"] for value in small_values(declared(function), 3)]
    assert {type(value) for value in values} == {kind}
    assert {value.factor for value in values} == {1, 2}
    repeated = set()
    for value in values:
        for name, rows in (("small", value.small), ("larger", value)):
            blocks = [rows.table(k) for k in range(10) if rows.touches(k)]
            assert bool(blocks) == (value.small.start < value.small.stop)
            assert all(0 <= block < rows.num_blocks for block in blocks)
            if len(set(blocks)) < len(blocks):
                repeated.add(name)
    assert repeated == ({"small"} if kind is IntoLarger else {"larger"}), "only where rows come from"
    assert search(function, wrong_rows) is None


@pytest.mark.parametrize("function", [copy_read, copy_write])
def test_a_block_twice_in_the_table_is_found(function) -> None:
    found = search(allowing_duplicates(function), wrong_rows)
    assert found is not None
    assert "table [0, 0]" in found.values


def test_an_instance_in_words_names_both_tables() -> None:
    rows = PagedRows((2, 1, 0).__getitem__, 3, 2, 1, 6)
    words = [value_in_words(value) for value in small_pairs(IntoLarger, rows, distinct=True)]
    small = "rows 1..5, blocks of 2, table [2, 1, 0], and"
    assert words == [
        f"{small} blocks of 2, table [0, 1, 2]",
        f"{small} blocks of 2, table [2, 1, 0]",
        f"{small} blocks of 4, table [0, 1]",
        f"{small} blocks of 4, table [1, 0]",
    ]
