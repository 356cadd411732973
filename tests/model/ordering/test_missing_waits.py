"""Advice about races: what is missing, and that each wait that is proposed helps, on every schedule."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from kvstage_model import schemes
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    Event,
    HostCopy,
    HostRead,
    HostWrite,
    Operation,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering import missing_waits as module
from kvstage_model.ordering.missing_waits import Advice, advice, lines, missing_edge, place
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.schedules.drivers import exhaustive
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.search.faults import hazard
from kvstage_model.search.search import Counterexample, search
from kvstage_model.simulation.machine import Machine
from tests.support.programs import BUFFERS, Log, issued, overlapping, programs

LEFT, RIGHT = BUFFERS
A, B = LEFT.at(0, 0, 1), RIGHT.at(0, 0, 1)
COPY, READ = "[step 0: Copy left[0].rows[0:1] -> right[0].rows[0:1] on stream one]", "[step 1: HostRead right[0].rows[0:1]]"
FILLED = Event("filled", 3)


def only_race(operations: Sequence[Operation]) -> tuple[tuple[Issued, ...], Race]:
    program = issued(operations)
    (race,) = races(program)
    return program, race


def kinds(found: Sequence[Advice]) -> list[list[str]]:
    return [[type(operation).__name__ for _, operation in each.added] for each in found]


def refuted(function: SchemeFunction) -> Counterexample:
    found = search(function, hazard)
    assert found is not None
    assert found.race is not None
    return found


# -- what is missing


def test_the_missing_edge_names_both_accesses_and_who_does_not_wait() -> None:
    program, race = only_race([Copy("one", A, B), HostRead(B)])
    assert missing_edge(program, race) == f"nothing orders the end of {COPY} before the begin of {READ}: the host does not wait"
    program, race = only_race([Copy("one", A, B), Copy("two", B, RIGHT.at(1, 0, 1))])
    assert missing_edge(program, race).endswith(": stream two does not wait for stream one")


def test_a_wait_that_comes_too_late_is_named_and_one_for_something_else_is_not() -> None:
    waits = [SyncStream("two"), HostWrite(LEFT.at(1, 0, 1)), SyncStream("one")]
    program, race = only_race([Copy("one", A, B), HostRead(B), *waits])
    late = "the host does not wait; the host waits only behind it, at [step 4: SyncStream on stream one]"
    assert missing_edge(program, race).endswith(late)
    program, race = only_race([Copy("one", A, B), HostRead(B), SyncStream("two")])
    assert missing_edge(program, race).endswith(": the host does not wait")


# -- what would help


def test_a_host_that_does_not_wait_may_wait_for_the_stream_or_for_an_event() -> None:
    program, race = only_race([Copy("one", A, B), HostRead(B)])
    found = advice(program, race)
    assert kinds(found) == [["SyncStream"], ["RecordEvent", "SyncEvent"]]
    new = "a new event is recorded on stream one right behind the first access, and the host waits for it (SyncEvent)"
    assert [each.words for each in found] == ["the host waits for stream one (SyncStream)", new]
    assert list(lines(program, race)) == [
        f"nothing orders the end of {COPY} before the begin of {READ}: the host does not wait",
        f"any of these would supply it, right before {READ}:",
        "  the host waits for stream one (SyncStream)",
        f"  {new}",
    ]
    changed = [each.operation for each in found[1].applied(program)]
    assert [type(operation).__name__ for operation in changed] == ["Copy", "RecordEvent", "SyncEvent", "HostRead"]


def test_a_stream_that_does_not_wait_may_wait_itself_or_be_held_up_by_the_host() -> None:
    program, race = only_race([Copy("one", A, B), Copy("two", B, RIGHT.at(1, 0, 1))])
    assert kinds(advice(program, race)) == [["SyncStream"], ["RecordEvent", "WaitEvent"], ["RecordEvent", "SyncEvent"]]
    assert "and stream two waits for it (WaitEvent)" in advice(program, race)[1].words


def test_an_event_that_is_recorded_already_comes_first() -> None:
    program, race = only_race([Copy("one", A, B), RecordEvent(FILLED, "one"), HostRead(B)])
    first, *others = advice(program, race)
    assert first.words == "the host waits for event filled[3] (SyncEvent)"
    assert kinds(others) == [["SyncStream"], ["RecordEvent", "SyncEvent"]]


@pytest.mark.parametrize(
    "between",
    [
        [RecordEvent(FILLED, "one"), RecordEvent(FILLED, "two")],  # the last record is another stream's
        [RecordEvent(FILLED, "two")],
        [SyncStream("two"), SyncEvent(FILLED)],
    ],
)
def test_a_wait_that_would_not_help_is_not_proposed(between: list[Operation]) -> None:
    program, race = only_race([Copy("one", A, B), *between, HostRead(B)])
    assert kinds(advice(program, race)) == [["SyncStream"], ["RecordEvent", "SyncEvent"]]


def test_rows_that_were_lent_are_taken_back() -> None:
    program, race = only_race([Release(B), HostRead(B), Acquire(B)])
    lent, taken = "[step 0: Release right[0].rows[0:1]]", "[step 2: Acquire]"
    nothing = f"nothing orders the end of {lent} before the begin of {READ}"
    assert list(lines(program, race)) == [
        f"{nothing}: the host does not wait; the host waits only behind it, at {taken}",
        f"any of these would supply it, right before {READ}:",
        "  the host takes the rows back (Acquire)",
    ]


def test_rows_are_lent_only_when_a_copy_from_them_has_ended() -> None:
    program, race = only_race([Copy("one", B, A), Release(B)])
    assert missing_edge(program, race).endswith(": the host does not wait")
    assert kinds(advice(program, race)) == [["SyncStream"], ["RecordEvent", "SyncEvent"]]


def test_a_record_before_the_copy_is_no_help() -> None:
    program, race = only_race([RecordEvent(FILLED, "one"), Copy("one", A, B), HostRead(B)])
    assert kinds(advice(program, race)) == [["SyncStream"], ["RecordEvent", "SyncEvent"]]


def test_without_the_check_waits_that_do_not_help_would_be_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    between = [RecordEvent(FILLED, "one"), RecordEvent(FILLED, "two")]
    program, race = only_race([Copy("one", A, B), *between, HostRead(B)])
    monkeypatch.setattr(module, "_apart", lambda *_: True)
    assert kinds(advice(program, race))[0] == ["SyncEvent"]


def run_with_events(program: Sequence[Issued], schedule: Schedule) -> Log:
    """The log of a program of copies, host operations, waits and records on a machine without memory."""
    machine = Machine(schedule)
    for index, each in enumerate(program):
        match each.operation:
            case Copy(stream):
                machine.issue(stream, lambda half: None, index)
            case SyncStream(stream):
                machine.synchronize(stream, index)
            case RecordEvent(event, stream):
                machine.record(event.name, stream, index)
            case SyncEvent(event):
                machine.synchronize_event(event.name, index)
            case WaitEvent(stream, event):
                machine.wait_event(stream, event.name, index)
            case _:
                machine.host(lambda: None, index)
    machine.drain()
    return machine.log


def test_each_wait_that_is_proposed_helps_on_every_schedule() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(programs())
    def helps(program: tuple[Issued, ...]) -> None:
        for race in races(program):
            found = advice(program, race)
            assert ["SyncStream"] in kinds(found), "the host can always wait for the whole stream"
            for each in found:
                changed = each.applied(program)
                pair = tuple(changed.index(program[number]) for number in (race.first, race.second))
                for _, log in exhaustive(lambda schedule, changed=changed: run_with_events(changed, schedule)):
                    assert pair not in overlapping(changed, log)
                    seen["schedules"] += 1
                seen.update(type(operation).__name__ for _, operation in each.added)
            seen["races"] += 1

    helps()
    assert seen["races"] > 20
    assert seen["schedules"] > 200
    assert {"SyncStream", "RecordEvent", "SyncEvent", "WaitEvent"} <= set(seen)


# -- of schemes


def test_a_ring_that_lost_its_wait_is_told_of_its_own_event() -> None:
    found = refuted(edited(schemes.ring_read, without(Named(SyncEvent))))
    assert found.race is not None
    assert advice(found.trace.program, found.race)[0].words == "the host waits for event filled[0] (SyncEvent)"
    assert place(found.trace.program, found.race).startswith("right before [step 0: HostCopy stage[0]")


def test_a_gather_that_lost_its_free_wait_is_told_of_its_own_event() -> None:
    found = refuted(edited(schemes.gather_read, without(Named(WaitEvent, schemes.COMPUTE))))
    assert found.race is not None
    program = found.trace.program
    assert [type(program[k].operation).__name__ for k in (found.race.first, found.race.second)] == ["Copy", "Gather"]
    words = [each.words for each in advice(program, found.race)]
    assert words[0] == "stream compute waits for event free[0] (WaitEvent)"
    assert place(program, found.race).startswith("right before [step 1: Gather pool")
    assert missing_edge(program, found.race).endswith(": stream compute does not wait for stream copy")


def test_what_the_caller_does_is_held_up_before_the_call_returns() -> None:
    found = refuted(edited(schemes.direct_read, without(Named(SyncStream))))
    assert found.race is not None
    words = [each.words for each in advice(found.trace.program, found.race)]
    assert words[0] == "the host waits for stream copy (SyncStream)"
    assert place(found.trace.program, found.race) == "before call 0 returns"


def test_following_the_first_advice_again_and_again_ends_without_a_race() -> None:
    """The program of every broken scheme above, mended until the race finder is silent."""
    broken = (
        edited(schemes.staged_write, without(Named(SyncStream))),
        edited(schemes.ring_read, without(Named(SyncEvent))),
        edited(schemes.gather_read, without(Named(WaitEvent))),
    )
    for function in broken:
        program = refuted(function).trace.program
        added = 0
        while (race := next(races(program), None)) is not None:
            program = advice(program, race)[0].applied(program)
            added += 1
            assert added < 20
        assert added
        assert list(races(program)) == []


def test_what_is_issued_behind_the_second_access_makes_no_difference() -> None:
    program, race = only_race([Copy("one", A, B), HostRead(B), SyncStream("one"), HostCopy(B, A)])
    assert kinds(advice(program, race)) == kinds(advice(program[:2], race))
    assert HappensBefore(program).apart(0, 1) == HappensBefore(program[:2]).apart(0, 1)
