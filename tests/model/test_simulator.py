"""The machine, and schemes on labelled memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from kvstage_model.axioms import Moment
from kvstage_model.library import LIBRARY, per_block_read, per_block_write, per_row_read, per_row_write
from kvstage_model.machine import DeadlockError, Machine
from kvstage_model.operations import Copy, HostCopy, HostRead, Operation, SyncStream
from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.races import HappensBefore, Race, races
from kvstage_model.runs import PagedRows
from kvstage_model.schedules import Hold, IssueOrder, Move, Replay, Schedule, delays, exhaustive
from kvstage_model.scheme import Scheme
from kvstage_model.simulator import Simulation, simulate
from kvstage_model.trace import unroll
from tests.model.programs import total

MOST_ROWS = 3
READS = [pair.read for pair in LIBRARY.values()]
WRITES = [pair.write for pair in LIBRARY.values()]
SCHEMES = [*READS, *WRITES]
"""Every scheme of the library, so that a new one is simulated from its first day."""


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


def small(function: SchemeFunction) -> list[Scheme]:
    """The scheme for all small values of its parameters."""
    return [function(**values) for values in small_values(declared(function), MOST_ROWS)]


def two_calls(function: SchemeFunction) -> Iterator[list[Scheme]]:
    """Every small instance called twice, and followed by another one."""
    found = small(function)
    for scheme, other in zip(found, [*found[1:], found[0]], strict=True):
        yield [scheme, scheme]
        yield [scheme, other]


def unwaited(scheme: Scheme) -> Scheme:
    """The scheme without its waits."""

    def step(i: int) -> Iterable[Operation]:
        return (operation for operation in scheme.step(i) if not isinstance(operation, SyncStream))

    return replace(scheme, step=step)


def by_delays(calls: Sequence[Scheme]) -> list[tuple[Schedule, Simulation]]:
    return list(delays(partial(simulate, calls)))


def words(simulation: Simulation) -> list[str]:
    return [str(wrong) for wrong in simulation.wrong]


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: function.__name__)
def test_the_schemes_are_right_in_every_small_instance(function: SchemeFunction) -> None:
    compared = 0
    for calls in two_calls(function):
        assert list(races(unroll(calls))) == []
        for schedule, simulation in by_delays(calls):
            assert words(simulation) == [], str(schedule)
            compared += sum(isinstance(issued.operation, HostRead) for issued in simulation.trace.program)
        for _, simulation in exhaustive(partial(simulate, calls)):
            assert words(simulation) == []
    assert compared > 1000


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: function.__name__)
def test_without_waits_they_are_wrong_in_every_small_instance(function: SchemeFunction) -> None:
    instances = 0
    for calls in two_calls(function):
        broken = [unwaited(scheme) for scheme in calls]
        assert next(races(unroll(broken)), None) is not None
        assert any(simulation.wrong for _, simulation in by_delays(broken))
        instances += 1
    assert instances > 20


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: function.__name__)
def test_the_schedule_of_their_race_replayed_is_wrong(function: SchemeFunction) -> None:
    replayed = 0
    for calls in two_calls(function):
        broken = [unwaited(scheme) for scheme in calls]
        race = copy_against_host_copy(broken)
        if race is not None:
            simulation = simulate(broken, Replay(HappensBefore(unroll(broken)).schedule(race)))
            assert simulation.wrong
            replayed += 1
    assert replayed > 10


def copy_against_host_copy(calls: Sequence[Scheme]) -> Race | None:
    program = unroll(calls)
    for race in races(program):
        if {type(program[index].operation) for index in (race.first, race.second)} == {Copy, HostCopy}:
            return race
    return None


def test_the_delays_that_find_a_lost_wait_do_what_all_schedules_do() -> None:
    for function in SCHEMES:
        for scheme in small(function):
            if scheme.result is not None and scheme.result.length == 1:
                broken = [unwaited(scheme)]
                every, delayed = list(exhaustive(partial(simulate, broken))), by_delays(broken)
                assert len(every) > len(delayed) > 1
                assert any(simulation.wrong for _, simulation in every)
                assert any(simulation.wrong for _, simulation in delayed)


@pytest.mark.parametrize(("write", "read"), [(per_row_write, per_block_read), (per_block_write, per_row_read)])
def test_what_was_written_is_read_back(write: SchemeFunction, read: SchemeFunction) -> None:
    runs = 0
    for scheme, back in product(small(write), small(read)):
        if same_pool(scheme, back):
            for _, simulation in by_delays([scheme, back, scheme]):
                assert words(simulation) == []
                runs += 1
    assert runs > 100


def same_pool(first: Scheme, second: Scheme) -> bool:
    assert first.result is not None
    assert second.result is not None
    return (first.result.pool.slots, first.result.pool.rows) == (second.result.pool.slots, second.result.pool.rows)


@pytest.mark.parametrize("write", WRITES, ids=lambda function: function.__name__)
def test_a_block_that_occurs_twice_makes_a_write_wrong(write: SchemeFunction) -> None:
    twice = write(PagedRows(total([0, 0]), 1, 2, 0, 4))
    once = write(PagedRows(total([1, 0]), 2, 2, 0, 4))
    assert words(simulate([twice], IssueOrder())) == [
        "call 0: row 0, at pool[0].rows[0:1], holds row 2",
        "call 0: row 1, at pool[0].rows[1:2], holds row 3",
    ]
    assert words(simulate([once], IssueOrder())) == []
    assert list(races(unroll([twice]))) == [], "no hazard: only the result tells"


def test_a_block_that_occurs_twice_is_read_all_the_same() -> None:
    assert words(simulate([per_block_read(PagedRows(total([0, 0]), 1, 2, 0, 4))], IssueOrder())) == []


def test_a_lost_wait_reads_what_was_never_written_or_torn_bytes() -> None:
    broken = [unwaited(per_row_read(PagedRows(total([0]), 1, 2, 0, 2)))]
    never, torn = "what was never written", "torn bytes: half of them row 0, half of them what was never written"
    assert words(simulate(broken, IssueOrder())) == []
    lost = words(simulate(broken, Hold(0, 0)))
    assert lost == [f"call 0: row {row}, at out[0].rows[{row}:{row + 1}], holds {never}" for row in (0, 1)]
    assert words(simulate(broken, Hold(0, 1)))[0] == f"call 0: row 0, at out[0].rows[0:1], holds {torn}"
    assert words(simulate(broken, Hold(1, 0))) == ["call 0: row 1, at out[0].rows[1:2], holds row 0"], "the row before it"


def test_a_call_of_no_rows_does_nothing() -> None:
    simulation = simulate([per_row_read(PagedRows(total([0]), 1, 1, 0, 0))], IssueOrder())
    assert simulation.trace.events == ()
    assert simulation.wrong == ()


@pytest.mark.parametrize("write", WRITES, ids=lambda function: function.__name__)
def test_a_trace_has_both_moments_of_every_operation(write: SchemeFunction) -> None:
    trace = simulate([write(PagedRows(total([1, 0]), 2, 2, 1, 4))], Hold(0, 1)).trace
    moments = [(event.index, event.moment) for event in trace.events]
    expected = {(index, moment) for index in range(len(trace.program)) for moment in (Moment.BEGIN, Moment.END)}
    assert len(moments) == len(set(moments))
    assert set(moments) == expected
