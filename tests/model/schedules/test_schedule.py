"""Schedules and the drivers that run code under them."""

from functools import partial

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostRead, SyncStream
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.schedules.drivers import NothingAsynchronousError, TooManySchedulesError, delays, exhaustive
from kvstage_model.schedules.schedule import Hold, IssueOrder, Late, Move, Replay, ReplayError, Schedule
from kvstage_model.simulation.machine import Machine
from tests.support.programs import Log, issued, run

STAGE = Buffer("stage", Memory.PINNED, 1, 2)
A, B = STAGE.at(0, 0, 1), STAGE.at(0, 1, 1)
HOST_MOVE = Move(None)
TWO_STREAMS = issued([Copy("one", A, B), Copy("two", A, B), HostRead(A)])


def order(log: Log) -> str:
    """A log in short: b0 where operation 0 begins, e0 where it ends."""
    return " ".join(f"{moment.value[0]}{label}" for label, moment in log)


def test_issue_order_finishes_streams_first() -> None:
    assert order(run(TWO_STREAMS, IssueOrder())) == "b0 e0 b1 e1 b2 e2"


def test_hold_lets_all_else_go_first() -> None:
    assert order(run(TWO_STREAMS, Hold(0, 0))) == "b1 e1 b2 e2 b0 e0"
    assert order(run(TWO_STREAMS, Hold(0, 1))) == "b0 b1 e1 b2 e2 e0"
    assert order(run(TWO_STREAMS, Hold(1, 1))) == "b0 e0 b1 b2 e2 e1"


def test_what_is_held_goes_when_the_host_needs_it() -> None:
    waited = issued([Copy("one", A, B), SyncStream("one"), Copy("two", A, B)])
    assert order(run(waited, Hold(0, 1))) == "b1 b0 e0 e1 b2 e2"


def test_work_behind_a_held_copy_waits_with_it() -> None:
    queued = issued([Copy("one", A, B), Copy("one", A, B), HostRead(A)])
    assert order(run(queued, Hold(0, 0))) == "b2 e2 b0 e0 b1 e1"


def test_delays_hold_each_half_of_each_copy_once() -> None:
    found = [(str(schedule), order(log)) for schedule, log in delays(partial(run, TWO_STREAMS))]
    assert found == [
        ("issue order", "b0 e0 b1 e1 b2 e2"),
        ("late", "b2 e2 b0 e0 b1 e1"),
        ("hold copy 0 before its begin", "b1 e1 b2 e2 b0 e0"),
        ("hold copy 0 before its end", "b0 b1 e1 b2 e2 e0"),
        ("hold copy 1 before its begin", "b0 e0 b2 e2 b1 e1"),
        ("hold copy 1 before its end", "b0 e0 b1 b2 e2 e1"),
    ]


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_delays_are_twice_the_copies_and_two(copies: int) -> None:
    program = issued([Copy("one", A, B)] * copies)
    assert len(list(delays(partial(run, program)))) == 2 * copies + 2


def test_delays_of_nothing_asynchronous_are_an_error() -> None:
    with pytest.raises(NothingAsynchronousError, match="nothing was issued on a stream"):
        list(delays(partial(run, issued([HostRead(A), SyncStream("one")]))))


def test_exhaustive_makes_every_order_once() -> None:
    # Two copies on two streams, no host: 4 half moves, each stream's in order: 4! / (2! 2!) = 6 orders once both are issued.
    def both_issued(schedule: Schedule) -> str:
        machine = Machine(Gate(schedule))
        machine.issue("one", lambda half: None, "0")
        machine.issue("two", lambda half: None, "1")
        machine.drain()
        return order(machine.log)

    found = [log for _, log in exhaustive(both_issued)]
    assert len(found) == len(set(found)) == 6


class Gate:
    """The host goes on where it can; a schedule decides about the rest."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def choose(self, moves: tuple[Move, ...]) -> Move:
        return HOST_MOVE if HOST_MOVE in moves else self._schedule.choose(moves)


def test_exhaustive_contains_the_delays() -> None:
    every = {order(log) for _, log in exhaustive(partial(run, TWO_STREAMS))}
    assert {order(log) for _, log in delays(partial(run, TWO_STREAMS))} < every


def test_exhaustive_names_its_choices() -> None:
    names = [str(schedule) for schedule, _ in exhaustive(partial(run, issued([Copy("one", A, B), HostRead(A)])))]
    assert names == ["choices 0, then 0", "choices 1, then 0", "choices 1 1, then 0"], "the read before, inside and after the copy"


def test_exhaustive_says_where_it_gives_up() -> None:
    every = sum(1 for _ in exhaustive(partial(run, TWO_STREAMS)))
    assert sum(1 for _ in exhaustive(partial(run, TWO_STREAMS), most=every)) == every, "just enough"
    with pytest.raises(TooManySchedulesError, match=f"more than {every - 1} schedules"):
        list(exhaustive(partial(run, TWO_STREAMS), most=every - 1))


def trace(*moments: tuple[int, Moment]) -> Trace:
    return Trace(TWO_STREAMS, tuple(TraceEvent(index, moment) for index, moment in moments))


BEGIN, END = Moment.BEGIN, Moment.END


@pytest.mark.parametrize(
    "moments",
    [
        [(1, BEGIN), (0, BEGIN), (2, BEGIN), (2, END), (0, END), (1, END)],
        [(0, BEGIN), (1, BEGIN), (1, END), (0, END), (2, BEGIN), (2, END)],
        [(2, BEGIN), (2, END), (1, BEGIN), (1, END), (0, BEGIN), (0, END)],
    ],
)
def test_a_replay_follows_its_trace(moments: list[tuple[int, Moment]]) -> None:
    log = run(TWO_STREAMS, Replay(trace(*moments)))
    assert log == moments


def test_a_replay_of_a_log_is_that_log() -> None:
    logs = [log for _, log in exhaustive(partial(run, WAITED))]
    assert len(logs) > 10
    for log in logs:
        events = tuple(TraceEvent(int(str(label)), moment) for label, moment in log)
        replayed = run(WAITED, Replay(Trace(WAITED, events)))
        assert [entry for entry in replayed if entry[0] != 1] == [entry for entry in log if entry[0] != 1]


WAITED = issued([Copy("one", A, B), SyncStream("one"), Copy("two", A, B), HostRead(A), Copy("one", B, A)])


def test_streams_finish_where_the_trace_ends() -> None:
    assert order(run(TWO_STREAMS, Replay(trace((1, BEGIN))))) == "b1 b2 e2 b0 e0 e1"


def test_code_that_does_something_else_can_not_follow() -> None:
    other = issued([Copy("one", A, B), HostRead(A)])
    with pytest.raises(ReplayError, match=r"trace is stream two, but only stream one \(copy 0, half 0\) can go on"):
        run(other, Replay(trace((1, BEGIN), (1, END))))


def test_schedules_have_readable_names() -> None:
    assert str(IssueOrder()) == "issue order"
    assert str(Hold(3, 1)) == "hold copy 3 before its end"
    assert str(Replay(trace((0, BEGIN), (0, END)))) == "replay of 3 moves"
    assert str(Move("one", 2, 1)) == "stream one (copy 2, half 1)"
    assert str(HOST_MOVE) == "host"


def test_late_moves_what_the_host_waits_for_alone() -> None:
    machine, done = Machine(Late()), list[str]()
    for stream in ("one", "two", "three"):
        machine.issue(stream, lambda half, stream=stream: done.append(f"{stream} {half}"), stream)  # type: ignore[misc]
    machine.record("event", "two", "record")
    machine.wait_event("three", "event", "wait")
    machine.issue("three", lambda half: done.append(f"after {half}"), "after")
    machine.host(lambda: done.append("host"), "host")
    assert done == ["host"]
    machine.synchronize("three", "synchronize")
    assert done == ["host", "three 0", "three 1", "two 0", "two 1", "after 0", "after 1"]
    machine.drain()
    assert done[-2:] == ["one 0", "one 1"]
