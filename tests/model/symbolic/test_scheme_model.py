"""The scheme in the solver does what the scheme does with ints."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from itertools import count
from typing import Annotated, Any

import pytest
import z3

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.language.edits import Named, edited, out_of_the_loop
from kvstage_model.language.operations import (
    Copy,
    Event,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    SyncEvent,
    SyncStream,
    reads,
    writes,
)
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schemes import registry
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel
from tests.support.loops import WAIT, Place, loop, staged
from tests.support.terms import value

STAGE = Buffer("stage", Memory.PINNED, 8, 8)


def ring(n: Annotated[int, AtLeast(0)], d: Annotated[int, AtLeast(1)]) -> Scheme:
    """A loop over numbers alone, with guards, branches and an epilogue."""

    def step(i: int) -> Iterator[Operation]:
        if i >= d:
            yield SyncStream("a" if i % 2 == 0 else "b")
        yield Copy("a" if i % 2 == 0 else "b", STAGE.at(i % d, 0, 1), STAGE.at(i % d, max(i - 2, 1), 1))
        if i < n - 1:
            yield HostWrite(STAGE.at(min(i, d), i * d, 2))

    return Scheme("ring", (STAGE,), n, step, (SyncStream("a"), SyncStream("b")))


def numbers(operation: Operation) -> list[Any]:
    return [number for rows in (*reads(operation), *writes(operation)) for number in (rows.slot, rows.start, rows.count)]


def in_words(operation: Operation, given: list[int]) -> str:
    return f"{type(operation).__name__} {getattr(operation, 'stream', '')} {given}"


def test_instances_are_the_steps_operations_in_order() -> None:
    model = SchemeModel(ring)
    world = model.world
    found = model.instances("i", world.integer("call"), 0, world.integer("i"))
    seen: Counter[bool] = Counter()
    for n in range(5):
        for d in (1, 2, 3):
            for i in range(-1, 6):
                given = {"parameter n": n, "parameter d": d, "i": i, "call": 0}
                happens = [instance.operation for instance in found if value(world, instance.exists, given)]
                shown = [in_words(o, [value(world, world.term(number), given) for number in numbers(o)]) for o in happens]
                expected = [in_words(o, numbers(o)) for o in ring(n, d).step(i)] if 0 <= i < n else []
                assert shown == expected
                seen[bool(expected)] += 1
    assert seen[True] > 10
    assert seen[False] > 10


def test_identity_is_site_call_and_step() -> None:
    model = SchemeModel(ring)
    world = model.world
    call, i = world.integer("call"), world.integer("i")
    found = model.instances("i", call, 0, i)
    assert [(instance.site.phase, instance.site.position) for instance in found] == [(0, at) for at in range(len(found))]
    assert len({instance.name for instance in found}) == len(found)
    assert all(instance.step.eq(world.term(i)) and instance.call.eq(world.term(call)) for instance in found)
    assert len({str(instance.end) for instance in found}) == len(found)


def test_phases_are_loop_epilogue_and_caller_and_only_the_epilogue_is_single() -> None:
    edit = out_of_the_loop(Named(SyncStream), SyncStream("copy"))
    model = SchemeModel(edited(schemes.staged_read, edit))
    assert model.names == ("loop", "epilogue", "caller")
    assert [phase.single for phase in model.phases] == [False, True, False]


def test_a_parameter_is_never_the_step_or_the_call_of_its_name() -> None:
    """A scheme with a parameter `j` was judged at the steps (i, j = the parameter) alone, and PROVED though it races."""

    def named(i: Annotated[int, AtLeast(0)], call: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("named", (STAGE,), 10, lambda step: [HostRead(STAGE.at(0, i, call))] if step != i else [])

    model = SchemeModel(named)
    world = model.world
    call, i = world.integer("call"), world.integer("i")
    (instance,) = model.instances("i", call, 0, i)
    rows = reads(instance.operation)[0]
    assert not world.term(rows.start).eq(world.term(i))
    assert not world.term(rows.count).eq(world.term(call))
    assert not world.impossible(instance.exists, world.term(i) == 3)


def stateful(every: int) -> SchemeFunction:
    """Waits at every so many-th step that is run: it counts, instead of looking at i."""

    def scheme(runs: Runs) -> Scheme:
        turn = [0]

        def step(place: Place, i: int) -> Iterator[Operation]:
            turn[0] += 1
            yield place.scribble(i)
            yield place.store(i)
            if turn[0] % every:
                yield WAIT

        return loop(step)(runs=runs)

    return scheme


def slot_by_turn(runs: Runs) -> Scheme:
    turns = cache(count)  # it keeps one count where nobody can look

    def step(place: Place, i: int) -> Iterator[Operation]:
        yield place.scribble(i, next(turns()) % 2)

    return loop(step, slots=2)(runs=runs)


@pytest.mark.parametrize(("function", "what"), [(stateful(2), "an assignment to a part"), (slot_by_turn, "'cache' of functools")])
def test_a_step_that_keeps_a_state_is_refused(function: SchemeFunction, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        SchemeModel(function)


def test_a_list_of_rows_is_refused_by_name() -> None:
    def lists(runs: Runs) -> Scheme:
        return Scheme("lists", (STAGE,), runs.number, lambda i: [Launch("a", reads=[STAGE.at(0, 0, 1)])])  # type: ignore[arg-type]

    with pytest.raises(UnsupportedError, match="a Launch whose reads is a list, which may change: make it a tuple"):
        SchemeModel(lists)


@pytest.mark.parametrize(
    ("buffers", "wrong"),
    [
        ((), "lists 0 times"),
        ((STAGE, STAGE), "lists 2 times"),
        ((replace(STAGE, rows=4),), "lists with other sizes"),
        ((replace(STAGE, memory=Memory.DEVICE),), "lists with other sizes"),
    ],
)
def test_a_buffer_that_the_scheme_does_not_list_as_it_is_used_is_refused(buffers: tuple[Buffer, ...], wrong: str) -> None:
    """The library gives a scheme the buffers that it lists: bounds proved of others would say nothing."""

    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("unlisted", buffers, n, lambda i: [HostWrite(STAGE.at(0, 0, 1))])

    with pytest.raises(UnsupportedError, match=wrong):
        SchemeModel(scheme)


@pytest.mark.parametrize("number", [True, 0.5, "0", None])
def test_rows_that_are_no_numbers_are_refused(number: Any) -> None:
    """A truth as a slot compares by identity: two steps would never touch a common row."""

    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("truth", (STAGE,), n, lambda i: [HostWrite(STAGE.at(number, 0, 1))])

    with pytest.raises(UnsupportedError, match="must be integers"):
        SchemeModel(scheme)


def test_the_truth_of_a_comparison_is_no_slot_and_a_raw_term_is_no_value() -> None:
    raw = z3.Int("raw")

    def truth(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("truth", (STAGE,), n, lambda i: [HostWrite(STAGE.at(i % 2 == 0, 0, 1))])

    def term(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("term", (STAGE,), n, lambda i: [HostWrite(STAGE.at(raw, 0, 1))])

    with pytest.raises(UnsupportedError, match="must be integers"):
        SchemeModel(truth)
    with pytest.raises(UnsupportedError, match="'raw' is of type ArithRef, which can change"):
        SchemeModel(term)


class Slot(int, Enum):
    """A number with a name, whose text is no number."""

    K = 1


def test_a_member_of_an_enum_is_the_number_that_it_equals() -> None:
    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("enum", (STAGE,), n, lambda i: [HostRead(STAGE.at(Slot.K, 0, i + Slot.K))])

    model = SchemeModel(scheme)
    call, i = model.world.integer("call"), model.world.integer("i")
    (instance,) = model.instances("i", call, 0, i)
    rows = reads(instance.operation)[0]
    assert model.world.impossible(model.world.term(rows.slot) != 1)
    assert model.world.impossible(model.world.term(rows.count) != model.world.term(i) + 1)


class Own(Scheme):
    """A scheme whose parts are others than those that the library runs."""


class Mine(Copy):
    """A kind of operation of one's own."""


class Wide(Rows):
    """Rows of one's own."""


def test_what_is_of_a_class_of_its_own_is_refused() -> None:
    def own(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Own("own", (STAGE,), n, lambda i: [HostWrite(STAGE.at(0, 0, 1))])

    def kind(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("kind", (STAGE,), n, lambda i: [Mine("a", STAGE.at(0, 0, 1), STAGE.at(1, 0, 1))])

    def rows(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("rows", (STAGE,), n, lambda i: [HostWrite(Wide(STAGE, 0, 0, 1))])

    for function, what in (
        (own, "returns a Own: return a Scheme"),
        (kind, "a Mine is a kind of operation"),
        (rows, "rows of a class"),
    ):
        with pytest.raises(UnsupportedError, match=what):
            SchemeModel(function)


@pytest.mark.parametrize("call", [1, True, None])
def test_an_event_that_says_its_call_is_refused(call: Any) -> None:
    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("calls", (STAGE,), n, lambda i: [SyncEvent(Event("e", 0, call))])

    with pytest.raises(UnsupportedError, match="a SyncEvent of event 'e' says of which call it is: leave `call` out"):
        SchemeModel(scheme)


def sized(slots: Callable[[int], int], rows: Callable[[int, Runs], int]) -> SchemeFunction:
    """A scheme whose staging buffer is as large as a number or a transfer says."""

    def scheme(n: Annotated[int, AtLeast(1)], runs: Runs) -> Scheme:
        stage = Buffer("stage", Memory.PINNED, slots(n), rows(n, runs))
        return Scheme("sized", (stage,), n, lambda i: [HostWrite(stage.at(0, 0, 1))])

    return scheme


@pytest.mark.parametrize(
    "rows", [lambda n, runs: 2 if n > 5 else 1, lambda n, runs: runs.length, lambda n, runs: min(runs.length, 4)]
)
def test_slots_that_lie_elsewhere_in_another_call_are_refused(rows: Callable[[int, Runs], int]) -> None:
    with pytest.raises(UnsupportedError, match="a slot of buffer 'stage' has other rows in one call than in another"):
        SchemeModel(sized(lambda n: 2, rows))
    assert SchemeModel(sized(lambda n: 1, rows)).names == ("loop",)


@pytest.mark.parametrize(
    ("slots", "rows"),
    [
        (lambda n: n, lambda n, runs: runs.longest),
        (lambda n: 2, lambda n, runs: n),
        (lambda n: 2, lambda n, runs: min(n, 4)),
        (lambda n: 2 if n > 5 else 3, lambda n, runs: 4),
    ],
)
def test_slots_that_stay_are_taken(slots: Callable[[int], int], rows: Callable[[int, Runs], int]) -> None:
    assert SchemeModel(sized(slots, rows)).names == ("loop",)


def test_what_is_no_operation_is_refused() -> None:
    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("odd", (STAGE,), n, lambda i: [STAGE])  # type: ignore[list-item]

    with pytest.raises(UnsupportedError, match="no operation"):
        SchemeModel(scheme)


def test_phases_must_not_depend_on_the_arguments() -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("odd", (STAGE,), n, lambda i: [], (SyncStream("a"),) if n > 2 else ())

    with pytest.raises(UnsupportedError, match="phases"):
        SchemeModel(scheme)


def test_a_value_of_the_scheme_is_merged_over_its_paths() -> None:
    model = SchemeModel(registry.LIBRARY["per_block"].read)
    world = model.world
    steps: Any = model.value(world.integer("call"), lambda scheme: scheme.steps)
    start, stop, size = 5, 12, 3
    fixed = {"rows.start": start, "rows.stop": stop}
    solver = z3.Solver(ctx=world.context)
    call = z3.Int("call", world.context)
    integers = [z3.IntSort(world.context)] * 2
    solver.add(*world.facts, z3.Int("rows.block_size", world.context) == size)
    solver.add(*(z3.Function(name, *integers)(call) == number for name, number in fixed.items()))
    expected = registry.LIBRARY["per_block"].read(PagedRows(lambda k: k, 9, size, start, stop)).steps
    solver.add(world.term(steps) == expected)
    assert solver.check() == z3.sat
    assert not world.impossible(world.term(steps) == 0), "an empty transfer has no step"


def test_a_promise_of_another_shape_on_some_path_is_refused() -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        direction = Direction.READ if n > 2 else Direction.WRITE
        result = Result(direction, STAGE, STAGE, n, lambda p: (0, p), lambda p: p)
        return Scheme("odd", (STAGE,), n, lambda i: [], result=result)

    model = SchemeModel(scheme)
    with pytest.raises(UnsupportedError, match="another shape"):
        model.value(model.world.integer("call"), lambda scheme: (scheme.result and scheme.result.direction,))


def test_a_loop_that_is_right_is_taken_as_it_is() -> None:
    assert SchemeModel(loop(staged, direction=Direction.READ)).names == ("loop", "caller")
