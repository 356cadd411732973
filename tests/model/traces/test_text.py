"""Traces drawn as lanes, against pictures drawn by hand."""

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, Event, HostRead, Operation, RecordEvent, Release, SyncStream
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.traces.text import LANE, timeline

A = Buffer("a", Memory.DEVICE, 1, 1).at(0, 0, 1)
B = Buffer("b", Memory.PINNED, 1, 1).at(0, 0, 1)
BEGIN, END = Moment.BEGIN, Moment.END


def trace(operations: list[Operation], *events: tuple[int, Moment]) -> Trace:
    program = tuple(Issued(0, "loop", step, operation) for step, operation in enumerate(operations))
    return Trace(program, tuple(TraceEvent(index, moment) for index, moment in events))


def picture(drawn: Trace, race: Race | None = None) -> list[str]:
    """The picture without the line that says what the marks mean."""
    *lines, key = timeline(drawn, race)
    assert key.startswith("+ begins or ends")
    assert ("# both of the race run" in key) == (race is not None)
    return lines


def test_a_race_is_marked_where_both_run() -> None:
    events = ((0, BEGIN), (1, BEGIN), (0, END), (1, END))
    drawn = trace([Copy("s", A, B), HostRead(B)], *events)
    assert picture(drawn, Race(0, 1)) == [
        "  host                                  stream s",
        "                                        + step 0: Copy a[0].rows[0:1] ->",
        "                                        |   b[0].rows[0:1]",
        "  + step 1: HostRead b[0].rows[0:1]     #",
        "  #                                     + ends",
        "  + ends",
    ]
    assert not any("#" in line for line in picture(drawn))


def test_what_has_nothing_in_between_is_one_mark_and_a_waiting_host_runs() -> None:
    operations = [Copy("s", A, B), RecordEvent(Event("e", 2), "s"), SyncStream("s"), HostRead(B)]
    events = ((2, BEGIN), (0, BEGIN), (0, END), (1, BEGIN), (1, END), (2, END), (3, BEGIN), (3, END))
    assert picture(trace(operations, *events)) == [
        "  host                                  stream s",
        "  + step 2: SyncStream on stream s",
        "  |                                     - step 0: Copy a[0].rows[0:1] ->",
        "  |                                         b[0].rows[0:1]",
        "  |                                     - step 1: RecordEvent e[2]",
        "  + ends",
        "  - step 3: HostRead b[0].rows[0:1]",
    ]


def test_what_a_trace_ends_in_the_middle_of_goes_on_and_streams_come_as_they_begin() -> None:
    operations = [Copy("one", A, B), Copy("two", A, A), HostRead(A)]
    assert picture(trace(operations, (1, BEGIN), (0, BEGIN), (0, END))) == [
        "  host                                  stream two                            stream one",
        "                                        + step 1: Copy a[0].rows[0:1] ->",
        "                                        |   a[0].rows[0:1]",
        "                                        |                                     - step 0: Copy a[0].rows[0:1] ->",
        "                                        |                                         b[0].rows[0:1]",
    ]


def test_whoever_rows_were_released_to_has_a_lane_that_is_no_stream() -> None:
    assert picture(trace([Release(B), HostRead(B)], (0, BEGIN), (1, BEGIN), (0, END), (1, END)), Race(0, 1)) == [
        "  host                                  elsewhere",
        "                                        + step 0: Release b[0].rows[0:1]",
        "  + step 1: HostRead b[0].rows[0:1]     #",
        "  #                                     + ends",
        "  + ends",
    ]


def test_two_releases_may_run_at_once() -> None:
    lines = picture(trace([Release(A), Release(B)], (0, BEGIN), (1, BEGIN), (0, END), (1, END)), Race(0, 1))
    assert lines == [
        "  host                                  elsewhere                             elsewhere",
        "                                        + step 0: Release a[0].rows[0:1]",
        "                                        #                                     + step 1: Release b[0].rows[0:1]",
        "                                        + ends                                #",
        "                                                                              + ends",
    ]


@pytest.mark.parametrize("streams", [("x", "y"), ("x", "y", "z")])
def test_of_a_found_race_exactly_its_two_lanes_are_marked(streams: tuple[str, ...]) -> None:
    operations: list[Operation] = [Copy(stream, A, B) for stream in streams]
    program = trace(operations).program
    order, seen = HappensBefore(program), 0
    for race in races(program):
        lines = picture(order.schedule(race), race)
        lanes = lines[0][2:].split("stream ")
        marked = {at for line in lines for at, sign in enumerate(line) if sign == "#"}
        agents = {lanes[(at - 2) // LANE].strip() for at in marked}
        assert agents == {program[race.first].agent, program[race.second].agent}
        assert all((at - 2) % LANE == 0 for at in marked)
        seen += 1
    assert seen == len(streams) * (len(streams) - 1) // 2
