"""Declared parameters and their small values."""

from dataclasses import replace
from typing import Annotated

import pytest

from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import (
    Declared,
    Distinct,
    Parameter,
    ParameterError,
    SchemeFunction,
    allowing_duplicates,
    declared,
)
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.search.instances import small_values


def everything(
    runs: Runs, rows: PagedRows, once: Distinct[Runs], apart: Distinct[PagedRows], slots: Annotated[int, AtLeast(2)]
) -> Scheme:
    raise NotImplementedError


def bare(rows: PagedRows, slots: int) -> Scheme:
    raise NotImplementedError


def untyped(rows):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def wrong_kind(name: str) -> Scheme:
    raise NotImplementedError


def two_ranges(slots: Annotated[int, AtLeast(1), AtLeast(2)]) -> Scheme:
    raise NotImplementedError


def test_parameters_are_read_from_annotations() -> None:
    assert declared(everything) == (
        Parameter("runs", Runs),
        Parameter("rows", PagedRows),
        Parameter("once", Runs, distinct=True),
        Parameter("apart", PagedRows, distinct=True),
        Parameter("slots", int, least=2),
    )


@pytest.mark.parametrize(("function", "named"), [(bare, "slots"), (untyped, "rows"), (wrong_kind, "name"), (two_ranges, "slots")])
def test_a_parameter_without_a_range_is_refused(function: SchemeFunction, named: str) -> None:
    with pytest.raises(ParameterError, match=f"parameter '{named}' of '{function.__name__}' is declared as .*: declare Runs"):
        declared(function)


def tables(distinct: bool, most_rows: int) -> list[tuple[PagedRows, list[int]]]:
    """All small transfers with the blocks that they use."""
    found = [values["rows"] for values in small_values((Parameter("rows", PagedRows, distinct=distinct),), most_rows)]
    return [(rows, [rows.table(k) for k in touched(rows)]) for rows in found]


def touched(rows: PagedRows) -> list[int]:
    return sorted({row // rows.block_size for row in range(rows.start, rows.stop)})


@pytest.mark.parametrize("distinct", [True, False])
def test_small_transfers_are_legal_and_of_every_length(distinct: bool) -> None:
    found = tables(distinct, 3)
    assert {rows.stop - rows.start for rows, _ in found} == {0, 1, 2, 3}
    for rows, blocks in found:
        assert 0 <= rows.start <= rows.stop
        assert rows.block_size >= 1
        assert all(0 <= block < rows.num_blocks for block in blocks)
    assert any(rows.start % rows.block_size for rows, _ in found), "a history that ends inside a block"
    assert any(rows.stop % rows.block_size for rows, _ in found), "a last block that is not full"
    assert any(blocks != sorted(blocks) for _, blocks in found), "a table that is out of order"


def test_only_a_distinct_table_names_no_block_twice() -> None:
    assert all(len(blocks) == len(set(blocks)) for _, blocks in tables(True, 3))
    assert any(len(blocks) > len(set(blocks)) for _, blocks in tables(False, 3))


def test_few_rows_come_first() -> None:
    lengths = [rows.stop - rows.start for rows, _ in tables(False, 3)]
    assert lengths == sorted(lengths)


def test_small_numbers_begin_at_the_least() -> None:
    found = [values["slots"] for values in small_values((Parameter("slots", int, least=2),), 1)]
    assert found == [2, 3, 4]


def test_runs_come_by_row_and_by_block() -> None:
    found = [values["runs"] for values in small_values((Parameter("runs", Runs),), 2)]
    assert {(runs.number, runs.longest) for runs in found if runs.length == 2 and runs.block_size == 2} == {(2, 1), (1, 2), (2, 2)}


def test_all_combinations_are_made() -> None:
    parameters = (Parameter("rows", PagedRows), Parameter("slots", int, least=1))
    one = list(small_values(parameters, 1))
    assert len(one) == 3 * len(tables(False, 1))
    assert {values["slots"] for values in one} == {1, 2, 3}


def test_a_promise_of_distinct_blocks_can_be_taken_back() -> None:
    loose = allowing_duplicates(everything)
    assert declared(loose) == tuple(replace(parameter, distinct=False) for parameter in declared(everything))


def test_parameters_may_be_stated() -> None:
    def made(**arguments: object) -> Scheme:
        return Scheme(repr(arguments), (), 0, lambda i: [])

    stated = Declared(made, (Parameter("slots", int, least=3),))
    assert declared(stated) == (Parameter("slots", int, least=3),)
    assert stated(slots=4).name == "{'slots': 4}"
