"""Events in the solver: which steps waits aim at, when an earlier record of an event counts, and what a window adds."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import pytest
import z3

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, Event, HostWrite, Operation, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore
from kvstage_model.schemes.gather import gather_read, gather_write
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_model.schemes.staged import staged_read
from kvstage_model.symbolic.aims import distances, distances_for
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window
from tests.support.terms import equal, value

STAGE = Buffer("stage", Memory.PINNED, 4, 4)
ZERO, ONE, TWO, THREE = (STAGE.at(slot, 0, 1) for slot in range(4))
GIVEN = {"i": 7, "call": 0, "parameter slots": 3, "parameter device_slots": 2, "parameter pinned_slots": 4}
"""Values of all numbers that an aim may be made of."""


def loop_of(model: SchemeModel) -> tuple[int, int, list[Instance]]:
    """A call, a step, and its operations, those of the loop."""
    call, i = model.world.integer("call"), model.world.integer("i")
    return call, i, model.instances("i", call, 0, i)


def at_values(model: SchemeModel, numbers: Iterable[Any]) -> list[int]:
    return [value(model.world, model.world.term(number), GIVEN) for number in numbers]


AIMS: dict[SchemeFunction, tuple[list[int], dict[str, list[int]]]] = {
    staged_read: ([], {"Copy": [], "HostCopy": []}),
    ring_read: ([1 - 3], {"Copy": [], "HostCopy": [1 - 3]}),
    ring_write: ([-3], {"HostCopy": [-3], "Copy": []}),
    gather_read: ([-2, 0, 1 - 4], {"Gather": [-2], "Copy": [0], "HostCopy": [1 - 4]}),
    gather_write: ([-4, -2, 0], {"HostCopy": [-4], "Copy": [-2], "Scatter": [0]}),
}
"""How far back each scheme's waits aim, with 3 slots, 2 on the device or 4 pinned; and which of them hold up whom."""


@pytest.mark.parametrize("function", AIMS)
def test_the_aims_of_a_step_and_of_each_that_is_held_up(function: SchemeFunction) -> None:
    model = SchemeModel(function)
    _, _, found = loop_of(model)
    every, of_each = AIMS[function]
    for instance in found:
        assert at_values(model, distances(model, instance)) == every
    readers = {type(instance.operation).__name__: instance for instance in found}
    assert {kind: at_values(model, distances_for(model, readers[kind])) for kind in of_each} == of_each


def test_a_wait_behind_an_operation_or_without_an_aim_is_not_for_it() -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        def step(i: int) -> Iterator[Operation]:
            yield SyncEvent(Event("done"))
            yield HostWrite(ZERO)
            yield SyncEvent(Event("done"), aim=i - 1)
            yield RecordEvent(Event("done"), "s")

        return Scheme("late", (STAGE,), n, step)

    model = SchemeModel(scheme)
    _, _, found = loop_of(model)
    assert at_values(model, distances(model, found[1])) == [-1]
    assert distances_for(model, found[1]) == []


# -- records on one stream and on two

Records = list[tuple[Any, str]]
RECORDS: dict[str, tuple[Any, bool]] = {
    "one stream": (lambda i: [(0, "a"), (0, "a")], True),
    "two streams, one event": (lambda i: [(0, "a"), (0, "b")], False),
    "two streams, an event each": (lambda i: [(0, "a"), (1, "b")], True),
    "two streams, two rings apart": (lambda i: [(i % 2, "a"), (2 + i % 2, "b")], True),
    "two streams, two rings that meet": (lambda i: [(i % 2, "a"), (1 + i % 2, "b")], False),
    "a stream that changes": (lambda i: [(0, "a" if i % 2 == 0 else "b")], False),
    "a stream that changes with the event": (lambda i: [(0, "a") if i % 2 == 0 else (1, "b")], True),
    "a step apart": (lambda i: [(i, "a"), (i + 1, "b")], False),
}


def recording(records: Any, fresh: bool = False, epilogue: tuple[Operation, ...] = ()) -> SchemeFunction:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        def step(i: int) -> Iterator[Operation]:
            for index, stream in records(i):
                yield RecordEvent(Event("done", index), stream)

        return Scheme("recording", (STAGE,), n, step, epilogue, fresh_events=fresh)

    return scheme


@pytest.mark.parametrize(("records", "one"), RECORDS.values(), ids=RECORDS.keys())
def test_whether_all_records_of_an_event_are_on_one_stream(records: Any, one: bool) -> None:
    model = SchemeModel(recording(records))
    _, _, found = loop_of(model)
    assert [model.on_one_stream(instance.operation) for instance in found] == [one] * len(found)
    assert found


@pytest.mark.parametrize("fresh", [False, True])
def test_records_of_another_phase_count_too(fresh: bool) -> None:
    """Fresh events tell calls apart, not the phases of one call."""
    for stream, one in (("a", True), ("b", False)):
        model = SchemeModel(recording(lambda i: [(0, "a")], fresh, (RecordEvent(Event("done"), stream),)))
        _, _, (instance,) = loop_of(model)
        assert model.on_one_stream(instance.operation) is one


# -- the window


def handed_over(n: Annotated[int, AtLeast(0)]) -> Scheme:
    """Two streams and every kind of edge between them and the host: `mine` is recorded on one stream, `shared` on two."""

    def step(i: int) -> Iterator[Operation]:
        yield Copy("a", ZERO, ONE)
        yield RecordEvent(Event("mine", i % 2), "a")
        yield RecordEvent(Event("shared"), "a")
        yield Copy("b", ZERO, TWO)
        yield RecordEvent(Event("shared"), "b")
        yield WaitEvent("b", Event("mine", i % 2), aim=i)
        yield Copy("b", ONE, THREE)
        yield SyncEvent(Event("shared"))
        yield HostWrite(TWO)

    return Scheme("handed over", (STAGE,), n, step)


COPY_A, COPY_B, COPY_ON, WRITE = 0, 3, 6, 8
"""Places of a step."""


def ordered(first: int, second: int) -> set[tuple[int, int]]:
    """Which operations of step `first` end before which of step `second` begin, by the window of these two steps.

    Each claim about moments is held against the race finder on 4 steps.
    """
    model = SchemeModel(handed_over)
    world, window = model.world, Window(model)
    call = world.integer("call")
    mine, other = (window.add(name, call, 0, world.integer(name)) for name in ("i", "j"))
    solver = z3.Solver(ctx=world.context)
    values = {"call": 0, "i": first, "j": second, "parameter n": 4}
    solver.add(*window.facts(), *equal(world, values, "call"))
    order = HappensBefore(unroll([handed_over(4)]))
    size, found = len(mine), set()
    for a, b, early, late in ((a, b, early, late) for a in mine for b in other for early in Moment for late in Moment):
        if solver.check(z3.Not(a.moment(early) <= b.moment(late))) == z3.unsat:
            at = (first * size + a.site.position, early, second * size + b.site.position, late)
            assert order.ordered(*at), f"the window claims an order that no axiom forces: {at}"
            if (early, late) == (Moment.END, Moment.BEGIN):
                found.add((a.site.position, b.site.position))
    return found


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (0, 2), (1, 3)])
def test_with_events_the_window_orders_no_more_than_the_race_finder(first: int, second: int) -> None:
    found = ordered(first, second)
    assert (COPY_A, COPY_ON) in found, "A6: the copy on stream b waits for the one on stream a"
    assert (COPY_A, COPY_B) in found or first == second, "and so does the next one there"
    assert (COPY_ON, WRITE) not in found or first < second


def test_an_event_recorded_on_two_streams_orders_nothing() -> None:
    """The last record, on stream b, would order copy b before the host's write; which record is the last one is not known."""
    assert (COPY_B, WRITE) not in ordered(0, 0)
    assert HappensBefore(unroll([handed_over(1)])).ordered(COPY_B, Moment.END, WRITE, Moment.BEGIN)


def test_were_every_record_to_count_the_window_would_order_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchemeModel, "on_one_stream", lambda model, record: True)
    with pytest.raises(AssertionError, match="the window claims an order that no axiom forces"):
        ordered(0, 0)


def steps(model: SchemeModel, window: Window) -> list[int]:
    """The steps of a window in the order in which they came in, each once."""
    return list(dict.fromkeys(at_values(model, (model.world.index(instance.step) for instance in window.instances))))


@pytest.mark.parametrize(
    ("function", "widened"),
    [
        (ring_write, [[7], [7, 4], [7, 4, 10], [7, 4, 10, 6, 8]]),
        (ring_read, [[7], [7, 5], [7, 5, 9], [7, 5, 9, 6, 8]]),
        (gather_write, [[7], [7, 3, 5], [7, 3, 5, 11, 9], [7, 3, 5, 11, 9, 6, 8]]),
    ],
)
def test_a_window_widens_to_aims_then_to_those_who_aim_then_to_neighbours(
    function: SchemeFunction, widened: list[list[int]]
) -> None:
    for reach, expected in enumerate(widened):
        model = SchemeModel(function)
        window = Window(model)
        call, i, _ = loop_of(model)
        window.widen(window.add("i", call, 0, i), reach)
        assert steps(model, window) == expected


def test_a_step_stands_in_a_window_once() -> None:
    model = SchemeModel(ring_write)
    window = Window(model)
    call, i, operations = loop_of(model)
    added = window.add("i", call, 0, i)
    assert window.at(call, 0, [i, i + 1 - 1]) == added, "the same step in other words"
    size = len(operations)
    assert len(window.at(call, 0, [i, i + 1, 1 + i])) == 2 * size
    assert len(window.instances) == 2 * size
    window.at(model.world.integer("other call"), 0, [i])
    assert len(window.instances) == 3 * size, "a step of another call is another step"
    names = [instance.name for instance in window.instances]
    assert len(set(names)) == len(names), "no two steps share their moments"
