"""The search finds the smallest broken instance, and shows what is wrong with it."""

from typing import Annotated, Any

import pytest

from kvstage_model import library, schemes
from kvstage_model.buffers import Buffer, Memory
from kvstage_model.operations import Copy, HostRead, HostWrite, SyncStream
from kvstage_model.parameters import AtLeast, SchemeFunction, allowing_duplicates
from kvstage_model.runs import PagedRows, by_block
from kvstage_model.scheme import Direction, Scheme
from kvstage_model.search import MOST_CALLS, MOST_ROWS, hazard, instances, out_of_bounds, search, value_in_words, wrong_rows
from kvstage_model.variants import Named, edited, out_of_the_loop, without
from tests.model.loops import WAIT, Place, loop, staged, stored

FAULTS = {"hazard": hazard, "wrong rows": wrong_rows, "out of bounds": out_of_bounds}
ALL = (schemes.staged_read, schemes.staged_write, library.per_row_read, library.per_row_write)
STAGE = Buffer("stage", Memory.DEVICE, 2, 4)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("function", ALL)
def test_nothing_is_found_in_what_is_right(function: SchemeFunction, fault: Any) -> None:
    assert search(function, fault) is None


def test_instances_come_by_rows_over_all_calls_and_are_not_few() -> None:
    seen = list(instances(library.per_row_read))
    first_shown = list(dict.fromkeys((sum(scheme.steps for scheme in calls), len(calls)) for calls, _ in seen))
    assert first_shown == sorted(first_shown)
    assert {len(calls) for calls, _ in seen} == set(range(1, MOST_CALLS + 1))
    assert max(rows for rows, _ in first_shown) == MOST_ROWS * MOST_CALLS
    assert len({words for _, words in seen}) > 30


def test_a_lost_wait_is_found_at_one_row() -> None:
    found = search(edited(schemes.staged_read, without(Named(SyncStream))), hazard)
    assert found is not None
    assert (found.values, found.steps) == ("runs = runs pool[0].rows[0:1], 1 call", 1)
    lines = list(found.lines())
    assert lines[0] == "instance: runs = runs pool[0].rows[0:1], 1 call"
    assert [line for line in lines if "<--" in line], "the two accesses are marked"
    assert lines[-1].startswith("wrong: [step 0: Copy pool[0]")
    assert lines[-1].endswith("touch a common row and overlap")


def test_a_hazard_between_two_calls_needs_two_calls() -> None:
    def step(place: Place, i: int) -> Any:
        if i == 0:
            yield place.scribble(i)
            yield place.store(i)

    found = search(loop(step), hazard)
    assert found is not None
    assert "2 calls" in found.values
    epilogue = loop(step, epilogue=lambda place: (WAIT,))
    assert search(epilogue, hazard) is None


def test_a_wait_after_the_loop_delivers_wrong_rows_at_one_row() -> None:
    function = edited(schemes.staged_read, out_of_the_loop(Named(SyncStream), SyncStream("copy")))
    found = search(function, wrong_rows)
    assert found is not None
    assert found.steps == 1
    assert found.race is not None


def test_wrong_rows_without_a_race_are_found() -> None:
    def swapped(place: Place, i: int) -> Any:
        yield place.fetch(place.runs.number - 1 - i)
        yield WAIT
        yield place.take(i)

    function = loop(swapped, direction=Direction.READ)
    found = search(function, wrong_rows)
    assert found is not None
    assert found.race is None
    assert search(function, hazard) is None


def test_a_block_twice_in_a_written_table_is_found_where_it_is_allowed() -> None:
    assert search(schemes.staged_write, wrong_rows) is None
    found = search(allowing_duplicates(schemes.staged_write), wrong_rows)
    assert found is not None
    assert found.wrong == "call 0: row 0, at pool[0].rows[0:1], holds row 1"


def test_the_source_overwritten_by_a_write_is_found() -> None:
    def clears(place: Place, i: int) -> Any:
        yield from stored(place, i)
        yield HostWrite(place.delivered(i))

    found = search(loop(clears, direction=Direction.WRITE), wrong_rows)
    assert found is not None
    assert "a row that the call must not touch, at out[0].rows[0:1]" in found.wrong


def test_a_row_of_the_hosts_buffer_beyond_the_transfer_is_found() -> None:
    def more(place: Place) -> Any:
        return (HostWrite(place.out.at(0, place.runs.length, 1)),)

    assert search(loop(staged, direction=Direction.READ, longer=1), wrong_rows) is None
    found = search(loop(staged, direction=Direction.READ, longer=1, epilogue=more), wrong_rows)
    assert found is not None
    assert "a row that the call must not touch, at out[0].rows[1:2]" in found.wrong


def test_rows_beyond_a_slot_and_a_copy_onto_itself_are_found() -> None:
    def beyond(n: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("beyond", (STAGE,), n, lambda i: [HostRead(STAGE.at(0, i + 3, 1))])

    def onto_itself(n: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("itself", (STAGE,), n, lambda i: [Copy("a", STAGE.at(0, 0, 2), STAGE.at(0, i, 2))])

    found = search(beyond, out_of_bounds)
    assert found is not None
    assert found.values == "n = 2, 1 call"
    assert found.wrong == "[step 1: HostRead stage[0].rows[4:5]]: not so: the rows of stage lie inside its slot"
    found = search(onto_itself, out_of_bounds)
    assert found is not None
    assert found.wrong.endswith("not so: source and target are disjoint")


def test_values_are_shown_as_people_would_write_them() -> None:
    rows = PagedRows(lambda k: (4, 2)[k], 5, 2, 1, 4)
    assert value_in_words(rows) == "rows 1..3, blocks of 2, table [4, 2]"
    assert value_in_words(by_block(rows)) == "runs pool[4].rows[1:2], pool[2].rows[0:2]"
    assert value_in_words(3) == "3"
