"""The axioms on events, each on the smallest program that shows it: read by the race finder, and on every schedule."""

from itertools import product

import pytest

from kvstage_model.language.operations import (
    Acquire,
    Copy,
    Event,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.ordering.axioms import Moment, edges, own, same_event
from kvstage_model.ordering.races import HappensBefore, races
from kvstage_model.schedules.drivers import exhaustive
from tests.support.programs import BUFFERS, issued, overlapping, run

LEFT, RIGHT = BUFFERS
A, B, C = LEFT.at(0, 0, 1), RIGHT.at(0, 0, 1), LEFT.at(1, 0, 1)
DONE, OTHER = Event("done"), Event("other")
X, Y = Copy("one", A, B), Copy("two", A, C)
"""Work of two streams: X fills B, Y fills C."""


def meet(*operations: Operation) -> set[tuple[int, int]]:
    """The pairs that may overlap, by the race finder and by every schedule of the machine, which must agree."""
    program = issued(operations)
    found = {(race.first, race.second) for race in races(program)}
    assert found == set().union(*(overlapping(program, log) for _, log in exhaustive(lambda schedule: run(program, schedule))))
    return found


# -- A5: the host waits for an event


def test_a_wait_returns_after_what_was_issued_before_the_record() -> None:
    assert meet(X, RecordEvent(DONE, "one"), SyncEvent(DONE), HostRead(B)) == set()
    assert meet(X, RecordEvent(DONE, "one"), HostRead(B)) == {(0, 2)}, "a record alone holds nobody up"


def test_an_event_that_was_never_recorded_does_not_block() -> None:
    assert meet(X, SyncEvent(DONE), HostRead(B)) == {(0, 2)}
    assert meet(X, SyncEvent(DONE), RecordEvent(DONE, "one"), HostRead(B)) == {(0, 3)}, "recorded later is not recorded"
    assert meet(X, RecordEvent(OTHER, "one"), SyncEvent(DONE), HostRead(B)) == {(0, 3)}


def test_a_record_marks_only_what_was_issued_on_its_stream_before_it() -> None:
    assert meet(RecordEvent(DONE, "one"), X, SyncEvent(DONE), HostRead(B)) == {(1, 3)}
    assert meet(X, RecordEvent(DONE, "two"), SyncEvent(DONE), HostRead(B)) == {(0, 3)}


def test_of_two_records_on_two_streams_the_last_one_counts() -> None:
    both = (X, Y, RecordEvent(DONE, "one"), RecordEvent(DONE, "two"), SyncEvent(DONE))
    assert meet(*both, HostRead(C)) == set()
    assert meet(*both, HostRead(B)) == {(0, 5)}, "the record on stream one is forgotten"


def test_of_two_records_on_one_stream_the_last_one_covers_the_first_one() -> None:
    assert meet(X, RecordEvent(DONE, "one"), RecordEvent(DONE, "one"), SyncEvent(DONE), HostRead(B)) == set()


def test_a_record_after_the_wait_changes_nothing_for_it() -> None:
    assert meet(X, RecordEvent(DONE, "one"), SyncEvent(DONE), RecordEvent(DONE, "two"), HostRead(B)) == set()


# -- A6: a stream waits for an event

READS_B = Launch("two", (B,))


def test_a_stream_waits_for_what_was_recorded() -> None:
    assert meet(X, RecordEvent(DONE, "one"), WaitEvent("two", DONE), READS_B) == set()
    assert meet(X, RecordEvent(DONE, "one"), READS_B, WaitEvent("two", DONE)) == {(0, 2)}, "earlier work is not held up"


def test_a_wait_of_a_stream_captures_at_the_hosts_call() -> None:
    assert meet(X, WaitEvent("two", DONE), RecordEvent(DONE, "one"), READS_B) == {(0, 3)}, "never recorded does not block"
    again = (RecordEvent(DONE, "one"), WaitEvent("two", DONE), X, RecordEvent(DONE, "one"), READS_B)
    assert meet(*again) == {(2, 4)}, "recorded again after the call: the wait is for the first record"


def test_a_wait_of_a_stream_counts_the_last_record_before_the_call() -> None:
    on_two_streams = (X, RecordEvent(DONE, "one"), RecordEvent(DONE, "three"), WaitEvent("two", DONE), READS_B)
    assert meet(*on_two_streams) == {(0, 4)}


def test_a_wait_of_a_stream_holds_up_that_stream_alone() -> None:
    waits = (X, RecordEvent(DONE, "one"), WaitEvent("two", DONE))
    assert meet(*waits, HostRead(B)) == {(0, 3)}, "the host goes on"
    assert meet(*waits, Launch("three", (B,))) == {(0, 3)}
    assert meet(*waits, SyncStream("two"), HostRead(B)) == set(), "a wait is work of its stream"


def test_waits_add_up_from_stream_to_stream_to_host() -> None:
    hop = (X, RecordEvent(DONE, "one"), WaitEvent("two", DONE), RecordEvent(OTHER, "two"), SyncEvent(OTHER))
    assert meet(*hop, HostWrite(B)) == set()
    assert meet(*hop[:2], *hop[3:], HostWrite(B)) == {(0, 4)}


def test_a_wait_on_the_events_own_stream_orders_nothing_new() -> None:
    assert meet(X, RecordEvent(DONE, "one"), WaitEvent("one", DONE), HostRead(B)) == {(0, 3)}


# -- queries: a yes is a wait that is over at once; a "not yet" orders nothing


def test_a_query_that_says_yes_is_a_wait() -> None:
    assert meet(X, RecordEvent(DONE, "one"), QueryEvent(DONE, 1), HostRead(B)) == set()
    assert meet(X, Y, RecordEvent(DONE, "one"), RecordEvent(DONE, "two"), QueryEvent(DONE, 1), HostRead(B)) == {(0, 5)}


def test_a_query_that_says_not_yet_orders_nothing_before_it() -> None:
    program = issued((X, RecordEvent(DONE, "one"), QueryEvent(DONE, 0), HostRead(B)))
    assert {(race.first, race.second) for race in races(program)} == {(0, 3)}


def test_of_answers_that_no_run_gives_nothing_is_said() -> None:
    """An event that was waited for has ended, and one that was never recorded has nothing to wait for."""
    waited = issued((X, RecordEvent(DONE, "one"), SyncEvent(DONE), QueryEvent(DONE, 0), Y, HostRead(C)))
    never = issued((QueryEvent(DONE, 0), Y, HostRead(C)))
    for program in (waited, never):
        assert not HappensBefore(program).possible
        assert list(races(program)) == []
        yes = issued([said_yes(each.operation) for each in program])
        assert HappensBefore(yes).possible
        assert len(list(races(yes))) == 1


def said_yes(operation: Operation) -> Operation:
    return QueryEvent(operation.event, 1) if isinstance(operation, QueryEvent) else operation


# -- A7: rows lent to somebody else


def test_rows_are_back_once_they_are_taken_back() -> None:
    assert meet(Release(B), HostRead(B)) == {(0, 1)}
    assert meet(Release(B), Acquire(B), HostRead(B)) == set()
    assert meet(Acquire(B), Release(B), HostRead(B)) == {(1, 2)}, "taken back before they were lent"


def test_rows_are_back_only_where_all_that_were_lent_are_taken_back() -> None:
    pair = LEFT.at(0, 0, 2)
    assert meet(Release(pair), Acquire(A), HostRead(A)) == {(0, 2)}, "the other row may still be written, and this one"
    assert meet(Release(A), Acquire(pair), HostRead(A)) == set()


def test_whoever_rows_are_lent_to_waits_for_no_stream_and_no_stream_for_him() -> None:
    """A copy into rows that are lent, and out of them, races: the release is no work of any stream."""
    assert meet(X, Release(B)) == {(0, 1)}
    assert meet(Release(A), X, SyncStream("one"), Acquire(A)) == {(0, 1)}


# -- the edges themselves


@pytest.mark.parametrize("index", [0, 1])
def test_events_are_one_where_name_index_and_call_are(index: int) -> None:
    names = [Event(name, number, call) for name, number, call in product(("done", "other"), (0, 1), (0, 1))]
    same = [(a, b) for a, b in product(names, names) if same_event(a, b)]
    assert [a is b for a, b in same] == [True] * len(names)
    assert same_event(Event("done", index), Event("done", index))


def test_only_a_record_makes_an_edge_to_a_wait_for_an_event() -> None:
    kinds: tuple[Operation, ...] = (
        X,
        RecordEvent(DONE, "one"),
        WaitEvent("two", DONE),
        SyncStream("one"),
        SyncEvent(DONE),
        QueryEvent(DONE, 1),
        QueryEvent(DONE, 0),
        HostRead(B),
    )
    made = {
        (type(first).__name__, type(second).__name__, edge.axiom)
        for first, second in product(kinds, kinds)
        for edge in edges(first, second)
        if edge.when and edge.last_record
    }
    assert made == {("RecordEvent", "SyncEvent", "A5"), ("RecordEvent", "QueryEvent", "A5"), ("RecordEvent", "WaitEvent", "A6")}


def test_a_record_and_a_wait_take_no_time_of_their_own() -> None:
    """A mark may end in the moment in which it begins; what moves rows may not."""
    marks = (RecordEvent(DONE, "one"), WaitEvent("two", DONE), SyncEvent(DONE))
    for operation, strict in (*((mark, False) for mark in marks), (X, True), (READS_B, True), (Launch("one"), False)):
        (last,) = (rule for rule in own(operation) if rule.later is Moment.END)
        assert last.strict is strict
