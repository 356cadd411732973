"""Schemes on labelled memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from kvstage_model.axioms import Moment
from kvstage_model.library import per_block_read, per_block_write, per_row_read, per_row_write
from kvstage_model.operations import Copy, HostCopy, HostRead, Operation, SyncStream
from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.races import HappensBefore, Race, races
from kvstage_model.runs import PagedRows
from kvstage_model.schedules import Hold, IssueOrder, Replay, Schedule, delays, exhaustive
from kvstage_model.scheme import Scheme
from kvstage_model.simulator import Simulation, simulate
from kvstage_model.trace import unroll
from tests.model.programs import total

MOST_ROWS = 3
READS = [per_row_read, per_block_read]
WRITES = [per_row_write, per_block_write]
SCHEMES = [*READS, *WRITES]
"""The schemes with a wait in every step: few enough schedules to run all of them."""


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
