"""Schemes on labelled memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from kvstage_model.language.edits import handed_to
from kvstage_model.language.operations import Copy, Event, HostCopy, HostRead, Launch, Operation, RecordEvent, SyncStream, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import by_block
from kvstage_model.language.scheme import CALLER, Scheme
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import span, unroll
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.schedule import Hold, IssueOrder, Replay, Schedule
from kvstage_model.schemes.direct import direct_read
from kvstage_model.schemes.gather import gather_pinned_read, gather_pinned_write
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.search.instances import values_of
from kvstage_model.simulation.simulator import Simulation, simulate
from tests.support.programs import total
from tests.support.tiers import often

MOST_ROWS = 3
READS = [LIBRARY["per_row"].read, LIBRARY["per_block"].read]
WRITES = [LIBRARY["per_row"].write, LIBRARY["per_block"].write]
SCHEMES = [*READS, *WRITES]
"""The schemes with a wait in every step: few enough schedules to run all of them."""


def small(function: SchemeFunction) -> list[Scheme]:
    """The scheme for all small values of its parameters."""
    return [function(**values) for rows in range(1, MOST_ROWS + 1) for values in values_of(declared(function), rows)]


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


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: getattr(function, "__name__", None))
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


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: getattr(function, "__name__", None))
def test_without_waits_they_are_wrong_in_every_small_instance(function: SchemeFunction) -> None:
    instances = 0
    for calls in two_calls(function):
        broken = [unwaited(scheme) for scheme in calls]
        assert next(races(unroll(broken)), None) is not None
        assert any(simulation.wrong for _, simulation in by_delays(broken))
        instances += 1
    assert instances > 20


@pytest.mark.parametrize("function", SCHEMES, ids=lambda function: getattr(function, "__name__", None))
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


@pytest.mark.parametrize(
    ("write", "read"),
    often([(LIBRARY["per_row"].write, LIBRARY["per_block"].read), (LIBRARY["per_block"].write, LIBRARY["per_row"].read)], 1),
)
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


@pytest.mark.parametrize("write", WRITES, ids=lambda function: getattr(function, "__name__", None))
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
    assert words(simulate([LIBRARY["per_block"].read(PagedRows(total([0, 0]), 1, 2, 0, 4))], IssueOrder())) == []


def test_a_lost_wait_reads_what_was_never_written_or_torn_bytes() -> None:
    broken = [unwaited(LIBRARY["per_row"].read(PagedRows(total([0]), 1, 2, 0, 2)))]
    never, torn = "what was never written", "torn bytes: half of them row 0, half of them what was never written"
    assert words(simulate(broken, IssueOrder())) == []
    lost = words(simulate(broken, Hold(0, 0)))
    assert lost == [f"call 0: row {row}, at out[0].rows[{row}:{row + 1}], holds {never}" for row in (0, 1)]
    assert words(simulate(broken, Hold(0, 1)))[0] == f"call 0: row 0, at out[0].rows[0:1], holds {torn}"
    assert words(simulate(broken, Hold(1, 0))) == ["call 0: row 1, at out[0].rows[1:2], holds row 0"], "the row before it"


def test_a_call_of_no_rows_does_nothing() -> None:
    simulation = simulate([LIBRARY["per_row"].read(PagedRows(total([0]), 1, 1, 0, 0))], IssueOrder())
    assert simulation.trace.events == ()
    assert simulation.wrong == ()


@pytest.mark.parametrize("write", WRITES, ids=lambda function: getattr(function, "__name__", None))
def test_a_trace_has_both_moments_of_every_operation(write: SchemeFunction) -> None:
    trace = simulate([write(PagedRows(total([1, 0]), 2, 2, 1, 4))], Hold(0, 1)).trace
    moments = [(event.index, event.moment) for event in trace.events]
    expected = {(index, moment) for index in range(len(trace.program)) for moment in (Moment.BEGIN, Moment.END)}
    assert len(moments) == len(set(moments))
    assert set(moments) == expected


# -- a caller on a stream

ROWS = PagedRows(total([2, 0]), 3, 2, 1, 4)
"""Rows 1 to 3 of two blocks: one row of block 2, both of block 0."""
KERNELS, MOVED = "compute", Event("moved")
HANDED = (RecordEvent(MOVED, "copy"), WaitEvent(KERNELS, MOVED))


def direct(caller: str, *epilogue: Operation) -> Scheme:
    """A direct read that hands its result to kernels of a stream, and what it does at its end."""
    scheme = direct_read(by_block(ROWS))
    assert scheme.result is not None
    return replace(scheme, epilogue=epilogue, result=replace(scheme.result, target_on=caller, source_on=caller))


def right(*calls: Scheme) -> bool:
    """Whether no schedule that holds something back makes a row wrong. Asserts that the caller's kernels read each row."""
    found = by_delays(calls)
    for _, simulation in found:
        kernels = sum(isinstance(each.operation, Launch) and each.phase == CALLER for each in simulation.trace.program)
        assert kernels == 2 * 3 * len(calls)
    return not any(simulation.wrong for _, simulation in found)


def raceless(*calls: Scheme) -> bool:
    return not list(races(unroll(calls)))


def test_a_caller_on_the_streams_own_needs_no_wait() -> None:
    assert raceless(direct("copy"))
    assert right(direct("copy"))


def test_a_caller_on_another_stream_needs_an_event() -> None:
    assert raceless(direct(KERNELS, *HANDED))
    assert right(direct(KERNELS, *HANDED))
    for missing in HANDED:
        broken = direct(KERNELS, *(operation for operation in HANDED if operation is not missing))
        assert not raceless(broken)
        assert not right(broken)


def test_a_kernel_of_the_caller_sees_what_is_there_when_it_runs() -> None:
    never = "what was never written"
    assert words(simulate([direct(KERNELS)], Hold(0, 0)))[0] == f"call 0: row 0, at out[0].rows[0:1], holds {never}"
    torn = f"torn bytes: half of them row 0, half of them {never}"
    assert words(simulate([direct(KERNELS)], Hold(0, 1)))[0] == f"call 0: row 0, at out[0].rows[0:1], holds {torn}"


def test_a_call_is_promised_the_pool_as_the_callers_kernels_leave_it() -> None:
    """They overwrite what was read. The next call must read what they wrote, however late they run."""
    first, second = (handed_to(direct(KERNELS), "copy", KERNELS) for _ in range(2))
    assert raceless(first, second)
    assert right(first, second)
    too_early = replace(second, prologue=())
    assert not raceless(first, too_early)
    wrong = [line for _, simulation in by_delays([first, too_early]) for line in words(simulation)]
    assert "call 1: row 0, at out[0].rows[0:1], holds what pool[2].rows[1:2] held at the start" in wrong


def test_a_kernel_of_the_caller_reads_until_it_ends() -> None:
    """Another kernel that writes what it reads, once it has begun, is seen where its end is held back, and only there."""
    first = handed_to(direct(KERNELS), "copy", KERNELS)
    row = first.buffers[1].at(0, 0, 1)
    stray = replace(first, prologue=(Launch("copy", writes=(row,)), *first.prologue))
    program = unroll([first, stray])
    kernel = next(n for n, each in enumerate(program) if each.phase == CALLER and isinstance(each.operation, Launch))
    number = sum(isinstance(each.operation, Copy | Launch) for each in program[:kernel])
    late = words(simulate([first, stray], Hold(number, 1)))
    assert [line for line in late if line.startswith("call 0: row 0")] == [
        f"call 0: row 0, at {span(row)}, holds what {span(row)} held after operation {len(unroll([first]))}"
    ]


def test_what_the_kernels_of_the_caller_overwrite_is_theirs() -> None:
    """That the source changes after the call is right; that a kernel of the scheme changes another row is not."""
    scheme = direct(KERNELS, *HANDED)
    assert words(simulate([scheme], IssueOrder())) == []
    stray = Launch("copy", writes=(scheme.buffers[0].at(1, 0, 1),))
    row = "pool[1].rows[0:1]"
    (found,) = words(simulate([replace(scheme, epilogue=(stray, *HANDED))], IssueOrder()))
    assert found == f"call 0: a row that the call must not touch, at {row}, holds what {row} held after operation 2"


def test_a_kernel_of_the_scheme_leaves_bytes_of_its_own() -> None:
    scheme = direct("copy")
    _, out = scheme.buffers
    found = words(simulate([replace(scheme, epilogue=(Launch("copy", writes=(out.at(0, 1, 2),)),))], IssueOrder()))
    assert found == [f"call 0: row {n}, at {row}, holds what {row} held after operation 2" for n, row in LAST_TWO]


LAST_TWO = ((1, "out[0].rows[1:2]"), (2, "out[0].rows[2:3]"))
PLACES = {
    gather_pinned_read: ("out[0].rows[0:1]", "out[0].rows[1:2]", "out[0].rows[2:3]"),
    gather_pinned_write: ("pool[2].rows[1:2]", "pool[0].rows[0:1]", "pool[0].rows[1:2]"),
}


@pytest.mark.parametrize("function", PLACES)
def test_a_gather_and_a_scatter_move_each_row_to_its_own_place(function: SchemeFunction) -> None:
    """Without a wait each row is named at its own address: none yet with the first half held back, half with the second."""
    unwaited = [replace(function(rows=ROWS), epilogue=())]
    assert words(simulate(unwaited, IssueOrder())) == []
    for half, found in ((0, "holds what"), (1, "holds torn bytes: half of them row")):
        lines = words(simulate(unwaited, Hold(0, half)))
        expected = [f"call 0: row {n}, at {place}, {found}" for n, place in enumerate(PLACES[function])]
        assert len(lines) == 3
        assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines
