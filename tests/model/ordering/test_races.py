"""The race finder against every schedule of the machine."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from kvstage_model.language.buffers import disjoint, overlap
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    HostCopy,
    HostRead,
    HostWrite,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.ordering import races as module
from kvstage_model.ordering.axioms import Edge, Moment, edges, own
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, Race, conflicts, races
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.schedule import Replay
from tests.support.programs import BUFFERS, EVENTS, cells, issued, overlapping, programs, programs_with_events, run, without

LEFT, RIGHT = BUFFERS
A, B = LEFT.at(0, 0, 1), RIGHT.at(0, 0, 1)
DONE = EVENTS[0]
EXAMPLES = 60
"""Programs of a test; the extended ones try many more."""


def found(program: tuple[Issued, ...]) -> set[tuple[int, int]]:
    return {(race.first, race.second) for race in races(program)}


def explored(program: tuple[Issued, ...]) -> set[tuple[int, int]]:
    """What overlaps in some schedule, from all schedules."""
    return set().union(*(overlapping(program, log) for _, log in exhaustive(lambda schedule: run(program, schedule))))


def test_the_race_finder_and_all_schedules_agree() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(programs())
    def agree(program: tuple[Issued, ...]) -> None:
        pairs = explored(program)
        assert found(program) == pairs
        seen["race"] += bool(pairs)
        seen["none"] += not pairs
        seen["a wait matters"] += len(found(without(program, SyncStream))) > len(pairs)

    agree()
    assert seen["race"] > EXAMPLES // 6
    assert seen["none"] > EXAMPLES // 6
    assert seen["a wait matters"] > 0


def agreement_with_events(examples: int, number: int = 0) -> Counter[str]:
    """How often each kind of operation mattered in random programs; a disagreement fails the test."""
    seen: Counter[str] = Counter()

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None)
    @given(programs_with_events())
    def agree(program: tuple[Issued, ...]) -> None:
        pairs = explored(program)
        assert found(program) == pairs
        seen["race"] += bool(pairs)
        seen["none"] += not pairs
        for kind in (SyncStream, SyncEvent, WaitEvent, RecordEvent, QueryEvent, Acquire):
            if any(isinstance(each.operation, kind) for each in program):
                seen[kind.__name__] += len(found(without(program, kind))) > len(pairs)

    agree()
    return seen


def test_with_events_and_kernels_they_agree_too() -> None:
    seen = agreement_with_events(EXAMPLES)
    assert seen["race"] > EXAMPLES // 6
    assert seen["none"] > EXAMPLES // 6
    assert min(seen["RecordEvent"], seen["SyncEvent"], seen["WaitEvent"], seen["QueryEvent"]) > 0
    assert seen["Acquire"] > 0


@pytest.mark.extended
@pytest.mark.parametrize("part", range(1, 9))
def test_in_many_programs_with_events_and_kernels_they_agree_too(part: int) -> None:
    seen = agreement_with_events(10 * EXAMPLES, part)
    assert min(seen["race"], seen["none"], seen["SyncEvent"], seen["WaitEvent"]) > EXAMPLES


@pytest.mark.extended
def test_no_race_is_missed_where_a_query_says_not_yet() -> None:
    """Of all schedules those are meant in which the record that it asks for had not ended when it asked.

    The finder may see more: a record may end long after the work before it, which no schedule of the machine shows.
    """
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
    @given(programs_with_events(), st.integers(0, 2))
    def miss_none(program: tuple[Issued, ...], later: int) -> None:
        operations = [each.operation for each in program]
        records = [(k, each.event) for k, each in enumerate(operations) if isinstance(each, RecordEvent)]
        assume(records)
        last, event = records[-1]
        at = min(last + 1 + later, len(program))
        asking = issued([*operations[:at], QueryEvent(event, 0), *operations[at:]])
        pairs: set[tuple[int, int]] = set()
        for _, log in exhaustive(lambda schedule: run(asking, schedule)):
            if log.index((last, Moment.END)) > log.index((at, Moment.BEGIN)):
                pairs |= overlapping(asking, log)
                seen["schedules"] += 1
        assert pairs <= found(asking)
        seen["race"] += bool(pairs)
        seen["all of them"] += bool(pairs) and pairs == found(asking)

    miss_none()
    assert seen["schedules"] > 100
    assert seen["race"] > 0
    assert 2 * seen["all of them"] > seen["race"]


def test_a_finder_that_lets_every_record_count_misses_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that is recorded again no longer waits for what its earlier record marked."""
    program = issued([Copy("one", A, B), RecordEvent(DONE, "one"), RecordEvent(DONE, "two"), SyncEvent(DONE), HostRead(B)])
    assert found(program) == explored(program) == {(0, 4)}

    monkeypatch.setattr(module, "nearest", lambda program: [set(range(number)) for number in range(len(program))])
    assert found(program) == set()


def every_order(program: tuple[Issued, ...]) -> set[tuple[int, Moment, int, Moment]]:
    """Which moments come before which, from the edges of every two operations and all that follows from them."""
    moments = [(number, moment) for number in range(len(program)) for moment in Moment]
    found = {(first, first) for first in moments}
    for number, each in enumerate(program):
        found |= {((number, rule.earlier), (number, rule.later)) for rule in own(each.operation)}
    for second in range(len(program)):
        captured = False
        for first in reversed(range(second)):
            for edge in edges(program[first].operation, program[second].operation):
                if edge.when and not (edge.last_record and captured):
                    found.add(((first, edge.earlier), (second, edge.later)))
                    captured |= edge.last_record
    for middle in moments:
        before = [a for a, b in found if b == middle]
        behind = [b for a, b in found if a == middle]
        found |= set(product(before, behind))
    return {(*first, *second) for first, second in found}


@pytest.mark.parametrize("strategy", [programs(), programs_with_events()], ids=["copies", "events and kernels"])
def test_the_nearest_operations_give_every_order(strategy: st.SearchStrategy[tuple[Issued, ...]]) -> None:
    """The finder asks few operations for edges; asked are here all of them."""

    @settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
    @given(strategy)
    def agree(program: tuple[Issued, ...]) -> None:
        order = HappensBefore(program)
        moments = list(product(range(len(program)), Moment))
        assert {(*first, *second) for first, second in product(moments, moments) if order.ordered(*first, *second)} == every_order(
            program
        )

    agree()


@pytest.mark.parametrize("strategy", [programs(), programs_with_events()], ids=["copies", "events and kernels"])
def test_delays_show_every_race(strategy: st.SearchStrategy[tuple[Issued, ...]]) -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(strategy)
    def agree(program: tuple[Issued, ...]) -> None:
        logs = [log for _, log in delays(lambda schedule: run(program, schedule))]
        pairs = found(program)
        assert set().union(*(overlapping(program, log) for log in logs)) == pairs
        seen[bool(pairs)] += 1

    agree()
    assert seen[True] > EXAMPLES // 6


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [(programs(), {"Copy", "HostCopy"}), (programs_with_events(), {"Copy", "Release"})],
)
def test_the_schedule_of_a_race_lets_it_happen(strategy: st.SearchStrategy[tuple[Issued, ...]], kinds: set[str]) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(strategy)
    def happens(program: tuple[Issued, ...]) -> None:
        order = HappensBefore(program)
        for race in races(program):
            log = run(program, Replay(order.schedule(race)))
            assert (race.first, race.second) in overlapping(program, log)
            seen[type(program[race.second].operation).__name__] += 1

    happens()
    assert {*kinds, "HostRead", "HostWrite"} <= seen.keys()


NEEDS: dict[str, list[Operation]] = {
    "A1": [HostWrite(A), Copy("one", A, B)],
    "A3": [Copy("one", A, B), Copy("one", B, LEFT.at(1, 0, 1))],
    "A4": [Copy("one", A, B), SyncStream("one"), HostRead(B)],
    "A5": [Copy("one", A, B), RecordEvent(DONE, "one"), SyncEvent(DONE), HostRead(B)],
    "A7": [Release(A), Acquire(A), HostRead(A)],
    "A6": [Copy("one", A, B), RecordEvent(DONE, "one"), WaitEvent("two", DONE), Copy("two", B, LEFT.at(1, 0, 1))],
}
"""For each axiom a program without a race, which only this axiom keeps in order."""


@pytest.mark.parametrize("axiom", NEEDS)
def test_every_axiom_is_needed(axiom: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = issued(NEEDS[axiom])
    assert found(program) == explored(program) == set()

    def without(first: Operation, second: Operation) -> Iterator[Edge]:
        return (edge for edge in edges(first, second) if edge.axiom != axiom)

    monkeypatch.setattr(module, "edges", without)
    assert found(program), f"without {axiom} the finder must see a race that no schedule shows"


def test_a_wait_on_another_stream_orders_nothing() -> None:
    program = issued([Copy("one", A, B), SyncStream("two"), HostRead(B)])
    assert list(races(program)) == [Race(0, 2)]
    assert explored(program) == {(0, 2)}


def test_a_later_copy_is_not_waited_for() -> None:
    program = issued([SyncStream("one"), Copy("one", A, B), HostRead(B)])
    assert list(races(program)) == [Race(1, 2)]


def test_neighbouring_rows_do_not_race() -> None:
    program = issued([Copy("one", A, LEFT.at(0, 1, 1)), HostWrite(LEFT.at(1, 1, 1)), HostWrite(RIGHT.at(0, 0, 2))])
    assert list(races(program)) == []


def test_two_reads_are_no_conflict() -> None:
    assert list(conflicts(HostRead(A), HostRead(A))) == []
    assert list(conflicts(Copy("one", A, B), HostRead(A))) == [(B, A)], "candidates; overlap sorts out other buffers"
    assert list(races(issued([Copy("one", A, B), HostRead(A)]))) == []


def test_the_nearest_race_comes_first() -> None:
    program = issued([Copy("one", A, B), Copy("two", A, B), HostCopy(B, A)])
    assert list(races(program)) == [Race(0, 1), Race(1, 2), Race(0, 2)]


def test_the_schedule_of_a_race_begins_as_late_as_it_must() -> None:
    program = issued([Copy("one", A, B), HostRead(B)])
    (race,) = races(program)
    events = [(event.index, event.moment) for event in HappensBefore(program).schedule(race).events]
    assert events == [(0, Moment.BEGIN), (1, Moment.BEGIN), (0, Moment.END), (1, Moment.END)]


def test_runs_overlap_where_they_share_a_row() -> None:
    runs = [buffer.at(slot, start, count) for buffer in BUFFERS for slot in (0, 1) for start in (0, 1, 2) for count in (0, 1, 2)]
    seen: Counter[bool] = Counter()
    for first, second in product(runs, repeat=2):
        shared = bool(cells(first) & cells(second))
        assert overlap(first, second) == shared
        assert disjoint(first, second) == (not shared)
        seen[shared] += 1
    assert min(seen.values()) > 00
