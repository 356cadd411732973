"""Traces against schemes: what is right passes, and what is wrong is named, with its place."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, orderings, without
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    HostCopy,
    HostWrite,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.partitions import by_block, by_chunk, by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, races
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.simulation.simulator import simulate
from kvstage_model.traces.check import MOST_RUNS, NOT_YET, Violation, check
from kvstage_model.traces.errors import EmptyTraceError, TraceError, TraceTooLargeError
from kvstage_model.traces.matching import Names, departure
from tests.support.programs import issued
from tests.support.traces import ROWS

RUNS = by_block(ROWS)
SCHEMES: dict[str, Callable[[], Scheme]] = {
    "staged read": lambda: schemes.staged_read(RUNS),
    "staged write": lambda: schemes.staged_write(by_row(ROWS)),
    "direct read": lambda: schemes.direct_read(RUNS),
    "gather_pinned write": lambda: schemes.gather_pinned_write(ROWS),
    "ring read": lambda: schemes.ring_read(RUNS, 2),
    "ring write": lambda: schemes.ring_write(RUNS, 1),
    "gather read": lambda: schemes.gather_read(by_chunk(ROWS, 2), 1, 2),
    "gather write": lambda: schemes.gather_write(by_chunk(ROWS, 2), 2, 1),
}
A, B = (Buffer(name, Memory.PINNED, 2, 4) for name in "ab")


def ran(*calls: Scheme) -> Trace:
    return simulate(calls, IssueOrder()).trace


@pytest.mark.parametrize("name", SCHEMES)
def test_every_schedule_of_a_scheme_is_its_own(name: str) -> None:
    scheme = SCHEMES[name]()
    traces = [simulation.trace for _, simulation in delays(lambda schedule: simulate([scheme], schedule))]
    assert len(traces) > 2
    assert all(check(trace, scheme) == () for trace in traces)
    two = ran(scheme, scheme)
    assert check(two, scheme) == check(two, [scheme, scheme]) == check(Trace(two.program, two.events[:3]), scheme) == ()


LOST = [(name, str(lost), lost) for name in SCHEMES for lost in orderings(SCHEMES[name]())]


@pytest.mark.parametrize(("name", "words", "lost"), LOST, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wait_or_record_that_is_lost_is_named_and_so_is_the_race_that_it_makes(name: str, words: str, lost: Named) -> None:
    scheme = SCHEMES[name]()
    broken = without(lost)(scheme)
    trace = ran(broken, broken)
    violations = check(trace, scheme)
    kind = lost.kind.__name__
    assert kind in violations[0].lines[0], words
    race = next(races(trace.program), None)
    assert [violation.race for violation in violations if violation.race] == ([race] if race else [])
    if race is not None:
        assert any("nothing orders the end of" in line for line in violations[-1].lines)
        assert any("Sync" in line or "WaitEvent" in line for line in violations[-1].lines[2:])
    assert departure(trace.program, trace.program, Names()) is None, "it is a program of its own scheme"


def words(program: Trace, scheme: Scheme) -> Violation:
    (violation, *_) = check(program, scheme)
    return violation


def changed(scheme: Scheme, kind: type, change: Callable[[Operation], Operation | None]) -> Trace:
    def edit(i: int) -> list[Operation]:
        edited = (change(operation) if isinstance(operation, kind) else operation for operation in scheme.step(i))
        return [operation for operation in edited if operation is not None]

    return ran(replace(scheme, step=edit))


def test_the_first_operation_that_is_not_the_schemes_is_told_in_words() -> None:
    staged, ring = SCHEMES["staged read"](), SCHEMES["ring read"]()
    lost = words(changed(staged, SyncStream, lambda _: None), staged)
    assert lost.index == 1
    assert lost.lines[0] == (
        "operation 1: [step 0: HostCopy stage[0].rows[0:1] -> out[0].rows[0:1]] comes where the scheme issues "
        "[step 0: SyncStream on stream copy]: the SyncStream is missing"
    )
    other = words(changed(ring, Copy, lambda copy: replace(copy, stream="x")), ring)
    assert other.lines[0].endswith("the stream is another")
    rows = words(changed(staged, Copy, lambda copy: replace(copy, source=replace(copy.source, slot=0))), staged)
    assert rows.lines[0].endswith("the rows are others")

    def pool(**other: object) -> Trace:
        return changed(
            staged, Copy, lambda copy: replace(copy, source=replace(copy.source, buffer=replace(copy.source.buffer, **other)))
        )

    assert words(pool(memory=Memory.PAGEABLE), staged).lines[0].endswith("pool is pageable memory, and the scheme's pool is device")
    assert "pool has 99 slots of 2 rows, and the scheme's pool has" in words(pool(slots=99), staged).lines[0]
    event = words(changed(ring, SyncEvent, lambda wait: replace(wait, event=Event("filled", 1))), ring)
    assert event.lines[0].endswith("the event is another")


def test_a_trace_that_ends_early_or_goes_on_is_told() -> None:
    staged = SCHEMES["staged read"]()
    trace = ran(staged)
    short = Trace(trace.program[:5], trace.events[:4])
    assert words(short, staged).lines[0] == (
        "operation 5: the trace ends where the scheme issues [step 1: HostCopy stage[0].rows[0:2] -> out[0].rows[1:3]]"
    )
    longer = Trace((*trace.program[:6], Issued(0, "epilogue", 0, SyncStream("copy"))), trace.events[:4])
    assert (
        words(longer, staged)
        .lines[0]
        .startswith("operation 6: [epilogue: SyncStream on stream copy] comes where the scheme has ended")
    )


def test_a_wait_for_a_stream_may_be_an_event_recorded_there() -> None:
    wanted = issued([Copy("s", A.at(0, 0, 1), B.at(0, 0, 1)), SyncStream("s"), HostCopy(B.at(0, 0, 1), A.at(1, 0, 1))])
    copy, _, use = (each.operation for each in wanted)
    mine, other = Event("mine"), Event("other")
    for instead in ([SyncEvent(mine)], [QueryEvent(mine, 0), QueryEvent(mine, 1)]):
        assert departure(issued([copy, RecordEvent(mine, "s"), *instead, use]), wanted, Names()) is None
    for wrong in ([], [SyncEvent(other)], [QueryEvent(mine, 0)], [WaitEvent("s", mine)]):
        assert departure(issued([copy, RecordEvent(mine, "s"), *wrong, use]), wanted, Names()), wrong
    assert departure(issued([copy, RecordEvent(mine, "t"), SyncEvent(mine), use]), wanted, Names())


def test_the_copies_of_a_batch_may_come_one_by_one() -> None:
    pairs = tuple((A.at(0, row, 1), B.at(0, row, 1)) for row in range(2))
    wanted = issued([CopyBatch("s", pairs)])
    single = [Copy("s", *pair) for pair in pairs]
    assert departure(issued(list(single)), wanted, Names()) is None
    assert departure(wanted, wanted, Names()) is None
    assert departure(issued(single[::-1]), wanted, Names())
    assert departure(issued(single[:1]), wanted, Names())


def test_names_stand_for_one_another_one_for_one() -> None:
    wanted = issued([Copy("s", A.at(0, 0, 1), B.at(0, 0, 1)), Copy("s", B.at(0, 0, 1), A.at(0, 1, 1))])

    def named(*names: str) -> tuple[Issued, ...]:
        one, two, three, four = (replace(A, name=name) for name in names)
        return issued([Copy("s", one.at(0, 0, 1), two.at(0, 0, 1)), Copy("s", three.at(0, 0, 1), four.at(0, 1, 1))])

    assert departure(named("x", "y", "y", "x"), wanted, Names()) is None
    assert departure(named("x", "y", "y", "z"), wanted, Names())
    assert departure(named("x", "y", "x", "y"), wanted, Names())
    assert departure(named("x", "x", "x", "x"), wanted, Names())
    assert departure(named("b", "a", "a", "b"), wanted, Names({"a": "a"})), "it is known which memory is which"


def test_an_event_that_comes_too_early_is_told_with_the_axiom() -> None:
    staged = SCHEMES["staged read"]()
    trace = ran(staged)
    order = [(event.index, event.moment) for event in trace.events]
    copy, wait = (0, Moment.END), (1, Moment.END)
    at, late = order.index(copy), order.index(wait)
    swapped = list(trace.events)
    swapped[at], swapped[late] = swapped[late], swapped[at]
    (violation,) = check(Trace(trace.program, tuple(swapped)), staged)
    assert violation.index == 1
    assert "[step 0: SyncStream on stream copy] ends before [step 0: Copy" in violation.lines[0]
    missing = [event for event in trace.events if event.index != 0]
    assert check(Trace(trace.program, tuple(missing)), staged)


E = Event("e")
COPY, OTHER = Copy("s", A.at(0, 0, 1), B.at(0, 0, 1)), Copy("s", A.at(0, 1, 1), B.at(0, 1, 1))
WRITE, SYNC = HostWrite(A.at(0, 0, 1)), SyncStream("s")
BROKEN: list[tuple[list[str], list[Operation], str]] = [
    (["A1"], [WRITE, HostWrite(A.at(0, 1, 1))], "0b 1b 0e 1e"),
    (["A1", "A2"], [WRITE, COPY], "0b 1b 0e 1e"),
    (["A3"], [COPY, OTHER], "0b 1b 0e 1e"),
    (["A3"], [COPY, OTHER], "1b 1e 0b 0e"),
    (["A4"], [COPY, SYNC], "0b 1b 1e 0e"),
    (["A4"], [COPY, SYNC], "1b 1e 0b 0e"),
    (["A5"], [COPY, RecordEvent(E, "s"), SyncEvent(E)], "0b 2b 2e 0e 1b 1e"),
    (["A5"], [COPY, RecordEvent(E, "s"), QueryEvent(E, 1)], "2b 2e 0b 0e 1b 1e"),
    (["A6"], [COPY, RecordEvent(E, "s"), WaitEvent("t", E)], "0b 2b 2e 0e 1b 1e"),
    (["A7"], [Release(A.at(0, 0, 1)), Acquire(A.at(0, 0, 2))], "0b 1b 1e 0e"),
]
"""The axioms that each order breaks: which half (b, e) of which operation happens, one behind the other."""


@pytest.mark.parametrize(("axioms", "operations", "halves"), BROKEN)
def test_each_axiom_that_is_broken_is_named_and_no_other(axioms: list[str], operations: list[Operation], halves: str) -> None:
    scheme = Scheme("any", (A, B), len(operations), lambda i: (operations[i],))
    moments = {"b": Moment.BEGIN, "e": Moment.END}
    events = tuple(TraceEvent(int(half[:-1]), moments[half[-1]]) for half in halves.split())
    too_early = [violation for violation in check(Trace(issued(operations), events), scheme) if violation.race is None]
    assert [re.findall(r"A\d(?= rules out)", violation.lines[0]) for violation in too_early] == [axioms]
    right = tuple(TraceEvent(number, moment) for number in range(len(operations)) for moment in (Moment.BEGIN, Moment.END))
    assert not [each for each in check(Trace(issued(operations), right), scheme) if each.race is None]


def test_no_axiom_is_named_for_a_record_that_was_made_again() -> None:
    """Only the last record of an event is waited for, and the stream's order is what puts the first before that."""
    operations = [RecordEvent(E, "s"), RecordEvent(E, "s"), SyncEvent(E)]
    trace = Trace(issued(operations), tuple(TraceEvent(2, moment) for moment in (Moment.BEGIN, Moment.END)))
    (violation,) = check(trace, Scheme("any", (A, B), 3, lambda i: (operations[i],)))
    assert "[step 2: SyncEvent e[0]] ends before [step 1: RecordEvent e[0] on stream s]" in violation.lines[0]


def test_every_order_that_no_axiom_rules_out_passes_and_every_other_one_is_told() -> None:
    """Two events next to one another, exchanged: allowed exactly where the order of the two is not forced."""
    trace = ran(SCHEMES["ring read"]())
    order, told = HappensBefore(trace.program), 0
    for at in range(len(trace.events) - 1):
        first, second = trace.events[at : at + 2]
        swapped = (*trace.events[:at], second, first, *trace.events[at + 2 :])
        forced = order.ordered(first.index, first.moment, second.index, second.moment)
        violations = check(Trace(trace.program, swapped), SCHEMES["ring read"]())
        assert bool(violations) == forced
        told += forced
    assert 0 < told < len(trace.events) - 1


def test_an_answer_that_no_run_can_give_is_told() -> None:
    event = Event("e")
    never = issued([Copy("s", A.at(0, 0, 1), B.at(0, 0, 1)), RecordEvent(event, "s"), SyncStream("s"), QueryEvent(event, 0)])
    scheme = Scheme("asks", (A, B), 1, lambda _: [each.operation for each in never])
    (violation,) = check(ran(scheme), scheme)
    assert "no run can give that answer" in violation.lines[0]


def test_what_shows_nothing_is_an_error() -> None:
    staged = SCHEMES["staged read"]()
    trace = ran(staged)
    for empty in (Trace((), ()), Trace(trace.program, ()), Trace((), (TraceEvent(0, Moment.BEGIN),))):
        with pytest.raises(EmptyTraceError):
            check(empty, staged)
    with pytest.raises(TraceError, match="1 calls, and 2 schemes"):
        check(trace, [staged, staged])
    long = issued([SyncStream("s")] * (MOST_RUNS + 1))
    with pytest.raises(TraceTooLargeError, match=f"{MOST_RUNS + 1} operations"):
        check(Trace(long, (TraceEvent(0, Moment.BEGIN),)), staged)
    asking = issued([QueryEvent(Event("e"), 0)] * (MOST_RUNS // NOT_YET + 1))
    with pytest.raises(TraceTooLargeError, match=f"{MOST_RUNS + NOT_YET} operations"):
        check(Trace(asking, (TraceEvent(0, Moment.BEGIN),)), staged)
