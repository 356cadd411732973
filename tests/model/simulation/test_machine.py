"""The machine: what it does when a schedule says so, and what its log says of events."""

import pytest

from kvstage_model.ordering.axioms import Moment
from kvstage_model.schedules.drivers import exhaustive
from kvstage_model.schedules.schedule import Hold, IssueOrder, Move, Schedule
from kvstage_model.simulation.machine import DeadlockError, Machine


class Scripted:
    """Takes its moves from a list: "" is the host."""

    def __init__(self, *agents: str) -> None:
        self.agents = list(agents)
        self.offered: list[tuple[Move, ...]] = []

    def choose(self, moves: tuple[Move, ...]) -> Move:
        self.offered.append(moves)
        agent = self.agents.pop(0)
        return next(move for move in moves if (move.stream or "") == agent)


def play(schedule: Schedule, happened: list[str]) -> Machine:
    """Issues x on one, y on two; waits for one; acts; drains."""
    machine = Machine(schedule)
    machine.issue("one", lambda half: happened.append(f"x{half}"), "x")
    machine.issue("two", lambda half: happened.append(f"y{half}"), "y")
    machine.synchronize("one", "wait")
    machine.host(lambda: happened.append("act"), "act")
    machine.drain()
    return machine


def test_the_machine_does_what_the_schedule_says() -> None:
    happened: list[str] = []
    schedule = Scripted("", "one", "", "two", "one", "two", "", "", "")
    machine = play(schedule, happened)
    assert happened == ["x0", "y0", "x1", "y1", "act"]
    begin, end = Moment.BEGIN, Moment.END
    expected = [("x", begin), ("wait", begin), ("y", begin), ("x", end), ("y", end), ("wait", end), ("act", begin), ("act", end)]
    assert machine.log == expected
    assert not schedule.agents, "every move was asked for"
    assert schedule.offered[1] == (Move(None), Move("one", 0, 0))
    assert schedule.offered[3] == (Move("one", 0, 1), Move("two", 1, 0)), "the host waits for stream one"


def test_a_host_act_may_fall_between_the_halves_of_a_copy() -> None:
    happened: list[str] = []
    play(Hold(1, 1), happened)
    assert happened == ["x0", "x1", "y0", "act", "y1"]


def test_a_stream_is_in_order() -> None:
    logs = []

    def run(schedule: Schedule) -> None:
        machine = Machine(schedule)
        for label in "xyz":
            machine.issue("one", lambda half: None, label)
        machine.drain()
        logs.append([label for label, _ in machine.log])

    assert len(list(exhaustive(run))) > 1
    assert all(log == ["x", "x", "y", "y", "z", "z"] for log in logs)


def test_a_wait_for_an_idle_stream_returns() -> None:
    machine = Machine(IssueOrder())
    machine.synchronize("nobody", "wait")
    machine.drain()
    assert machine.log == [("wait", Moment.BEGIN), ("wait", Moment.END)]


def test_a_wait_that_never_ends_is_a_deadlock() -> None:
    machine = Machine(IssueOrder())
    machine.issue("one", lambda half: None, "x")
    with pytest.raises(DeadlockError, match="all streams are idle"):
        machine.block(lambda: False, "wait")
    assert [label for label, _ in machine.log] == ["wait", "x", "x"], "what could move did"


def test_a_schedule_can_only_choose_what_can_move() -> None:
    class Mistaken:
        def choose(self, moves: tuple[Move, ...]) -> Move:
            return Move("two")

    with pytest.raises(ValueError, match=r"chose stream two \(copy 0, half 0\), but only host can move now"):
        Machine(Mistaken()).issue("one", lambda half: None, "x")


# -- events

BEGIN, END = Moment.BEGIN, Moment.END


def nothing(half: int) -> None:
    """Work that moves no rows."""


def ends(machine: Machine) -> list[object]:
    """The labels in the order in which they ended."""
    return [label for label, moment in machine.log if moment is END]


def test_a_record_ends_after_the_work_that_was_issued_on_its_stream_before_it() -> None:
    schedule = Scripted("", "", "", "one", "one", "")
    machine = Machine(schedule)
    machine.issue("one", nothing, "x")
    machine.record("done", "one", "record")
    machine.issue("one", nothing, "y")
    machine.synchronize_event("done", "wait")
    assert machine.log == [("wait", BEGIN), ("x", BEGIN), ("x", END), ("record", BEGIN), ("record", END), ("wait", END)]
    assert schedule.offered[3] == (Move("one", 0, 0),), "the host is blocked until x has ended"
    assert schedule.offered[-1] == (Move(None), Move("one", 1, 0)), "y is not waited for"


def test_a_record_on_an_idle_stream_ends_at_once_and_none_does_not_block() -> None:
    schedule = Scripted("", "", "")
    machine = Machine(schedule)
    machine.synchronize_event("done", "too early")
    machine.record("done", "one", "record")
    machine.synchronize_event("done", "wait")
    assert ends(machine) == ["too early", "record", "wait"]
    assert not schedule.agents


def test_the_last_record_of_an_event_is_waited_for_wherever_it_is() -> None:
    schedule = Scripted("", "", "", "", "two", "two", "")
    machine = Machine(schedule)
    machine.issue("one", nothing, "x")
    machine.record("done", "one", "first record")
    machine.issue("two", nothing, "y")
    machine.record("done", "two", "second record")
    machine.synchronize_event("done", "wait")
    assert ends(machine) == ["y", "second record", "wait"], "x may still run"


def test_a_stream_waits_for_the_record_that_was_the_last_one_at_the_call() -> None:
    schedule = Scripted("", "", "", "", "", "", "one", "one", "two", "two", "one", "one", "")
    machine = Machine(schedule)
    machine.issue("one", nothing, "x")
    machine.record("done", "one", "record")
    machine.wait_event("two", "done", "hold")
    machine.issue("two", nothing, "y")
    machine.issue("one", nothing, "z")
    machine.record("done", "one", "recorded again")
    machine.drain()
    assert ends(machine) == ["x", "record", "hold", "y", "z", "recorded again"], "y does not wait for z"
    assert schedule.offered[6] == (Move("one", 0, 0),), "the host drains, stream two is held up"


def test_a_stream_that_waits_holds_up_neither_the_host_nor_other_streams() -> None:
    schedule = Scripted("", "", "", "", "", "three", "three", "one", "one", "")
    machine = Machine(schedule)
    machine.issue("one", nothing, "x")
    machine.record("done", "one", "record")
    machine.wait_event("two", "done", "hold")
    machine.host(lambda: None, "act")
    machine.issue("three", nothing, "y")
    machine.drain()
    assert ends(machine) == ["act", "y", "x", "record", "hold"]


def test_a_wait_for_a_stream_covers_its_own_waits_for_events() -> None:
    schedule = Scripted("", "", "", "one", "one", "")
    machine = Machine(schedule)
    machine.issue("one", nothing, "x")
    machine.record("done", "one", "record")
    machine.wait_event("two", "done", "hold")
    machine.synchronize("two", "wait")
    assert ends(machine) == ["x", "record", "hold", "wait"]
    assert schedule.offered[3] == (Move("one", 0, 0),), "the host is blocked: stream two waits for stream one"


def test_a_chain_of_waits_is_settled_from_its_end_to_its_head() -> None:
    machine = Machine(Scripted(*[""] * 6, "three", "three", ""))
    machine.issue("three", nothing, "x")
    machine.record("c", "three", "third")
    machine.wait_event("two", "c", "hold two")
    machine.record("b", "two", "second")
    machine.wait_event("one", "b", "hold one")
    machine.record("a", "one", "first")
    machine.synchronize_event("a", "wait")
    assert ends(machine) == ["x", "third", "hold two", "second", "hold one", "first", "wait"]


def test_marks_leave_no_choice_to_a_schedule() -> None:
    """They end by themselves: only work is offered, numbered as it was issued."""
    schedule = Scripted("", "", "", "", "one", "one", "two", "two", "")
    machine = Machine(schedule)
    machine.record("done", "two", "record")
    machine.issue("one", nothing, "x")
    machine.wait_event("two", "done", "hold")
    machine.issue("two", nothing, "y")
    machine.drain()
    offered = [move for moves in schedule.offered for move in moves if move.stream is not None]
    assert {(move.stream, move.number) for move in offered} == {("one", 0), ("two", 1)}
