"""The search finds the smallest broken instance, and shows what is wrong with it."""

from typing import Annotated, Any

import pytest

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, edited, out_of_the_loop, without
from kvstage_model.language.operations import Copy, Event, HostRead, HostWrite, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Declared, Parameter, SchemeFunction, allowing_duplicates, declared
from kvstage_model.language.partitions import Runs, by_block
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schemes import registry
from kvstage_model.search.faults import hazard, out_of_bounds, wrong_rows
from kvstage_model.search.instances import LONGEST, MOST_CALLS, MOST_ROWS, instances
from kvstage_model.search.search import LOOKED, LOOKED_AT_NUMBERS, MOST_INSTANCES, looked, search
from kvstage_model.search.wording import value_in_words
from tests.support.loops import WAIT, Place, loop, staged, stored

FAULTS = {"hazard": hazard, "wrong rows": wrong_rows, "out of bounds": out_of_bounds}
ALL = (schemes.staged_read, schemes.staged_write, registry.LIBRARY["per_row"].read, registry.LIBRARY["per_row"].write)
STAGE = Buffer("stage", Memory.PINNED, 2, 4)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("function", ALL)
def test_nothing_is_found_in_what_is_right(function: SchemeFunction, fault: Any) -> None:
    assert search(function, fault) is None


def test_instances_come_by_rows_over_all_calls_each_once_and_are_not_few() -> None:
    seen = list(instances(registry.LIBRARY["per_row"].read))
    shown = list(dict.fromkeys((sum(scheme.steps for scheme in calls), len(calls)) for calls, _ in seen))
    small = [(rows, calls) for rows, calls in shown if rows <= MOST_ROWS * calls]
    assert shown == [*sorted(small), *((rows * calls, calls) for rows in range(MOST_ROWS + 1, LONGEST + 1) for calls in (1, 2))]
    assert shown[0] == (0, 1), "a transfer of no rows"
    assert {len(calls) for calls, _ in seen} == set(range(1, MOST_CALLS + 1))
    assert len({words for _, words in seen}) == len(seen) > 30


def test_numbers_alone_come_once_for_each_number_of_calls() -> None:
    def counted(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("counted", (STAGE,), n, lambda i: [HostRead(STAGE.at(0, i, 1))])

    words = [words for _, words in instances(counted)]
    two_calls = [f"n = {n}{other}, 2 calls" for n in (1, 2, 3) for other in ("", *(f", then {m}" for m in (1, 2, 3) if m != n))]
    assert words[:12] == [*(f"n = {n}, 1 call" for n in (1, 2, 3)), *two_calls]
    assert f"n = {LONGEST}, 2 calls" in words
    assert f"n = 1, then {LONGEST}, 2 calls" in words


def test_numbers_may_have_no_least_one_near_0() -> None:
    """They are not tried one by one up to it."""

    def far(below: Annotated[int, AtLeast(-50)], above: Annotated[int, AtLeast(4096)]) -> Scheme:
        return Scheme("far", (STAGE,), 1, lambda i: [HostRead(STAGE.at(0, i, 1))])

    listed = [words for _, words in instances(far)]
    below, above = (-50, -49, -48, *range(LONGEST + 1)), (4096, 4097, 4098)
    alone = {f"below = {n}, above = {m}, 1 call" for n in below for m in above}
    assert {words for words in listed if words.endswith("1 call")} == alone
    assert len(set(listed)) == len(listed) == len(alone) + len(alone) ** 2, "each pair of calls once"


def test_a_search_among_many_numbers_ends_and_says_how_far_it_looked() -> None:
    def many(a: Annotated[int, AtLeast(0)], b: Annotated[int, AtLeast(0)], c: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("many", (STAGE,), 1, lambda i: [HostRead(STAGE.at(0, i, 1))])

    tried: list[str] = []
    assert search(many, lambda calls, values: tried.append(values)) is None
    assert len(set(tried)) == len(tried) == MOST_INSTANCES
    assert looked(many) == f"the first {MOST_INSTANCES} instances, smallest first, of {LOOKED_AT_NUMBERS}"
    assert looked(registry.LIBRARY["per_row"].read) == LOOKED, "of these there are fewer"


def test_a_number_that_sizes_a_buffer_is_the_same_in_all_calls() -> None:
    def sized(slots: Annotated[int, AtLeast(1)], n: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("sized", (Buffer("stage", Memory.DEVICE, slots, 1),), n, lambda i: [])

    later = {words for calls, words in instances(sized) if len(calls) == 2}
    assert "slots = 2, n = 0, then 1, 2 calls" in later
    assert not any("slots = 2, then" in words for words in later)


def test_a_hazard_between_calls_of_different_numbers_is_found() -> None:
    """An event for each frame's parity: the next frame waits for another one than the last copy recorded."""

    def frames(frame: Annotated[int, AtLeast(0)], turns: int) -> Scheme:
        event, rows = Event("sent", frame % turns), STAGE.at(0, 0, 1)
        copy = Copy("s", rows, STAGE.at(1, 0, 1))
        return Scheme("frames", (STAGE,), 1, lambda i: [SyncEvent(event), HostWrite(rows), copy, RecordEvent(event, "s")])

    found = search(Declared(lambda frame: frames(frame, 2), (Parameter("frame", int),)), hazard)
    assert found is not None
    assert found.values == "frame = 0, then 1, 2 calls"
    assert search(Declared(lambda frame: frames(frame, 1), (Parameter("frame", int),)), hazard) is None


def test_a_wait_that_is_missing_in_the_seventh_step_is_found() -> None:
    """A ring of seven slots is used again in the eighth step only."""

    def seven(runs: Runs) -> Scheme:
        return schemes.ring_read(runs, 7)

    found = search(edited(seven, without(Named(RecordEvent))), hazard)
    assert found is not None
    ring = edited(schemes.ring_write, without(Named(SyncEvent)))
    fixed = Declared(lambda runs: ring(runs=runs, slots=7), declared(schemes.staged_write))
    found = search(fixed, hazard)
    assert found is not None
    assert found.steps == 8
    assert search(Declared(lambda runs: ring(runs=runs, slots=9), declared(schemes.staged_write)), one_call(hazard)) is None


def one_call(fault: Any) -> Any:
    """A fault, looked for in one call alone."""
    return lambda calls, words: fault(calls, words) if len(calls) == 1 else None


def test_what_goes_wrong_in_a_transfer_of_no_rows_is_found() -> None:
    def always_takes(place: Place) -> Any:
        return (HostRead(place.out.at(0, 0, 1)),)

    found = search(loop(staged, direction=Direction.READ, epilogue=always_takes), out_of_bounds)
    assert found is not None
    assert found.values == "runs = no rows, 1 call"


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
    assert found.values == "runs = no rows, 1 call"
    assert "a row that the call must not touch, at out[0].rows[0:1]" in found.wrong


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
