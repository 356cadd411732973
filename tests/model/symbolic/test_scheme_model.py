"""The scheme in the solver does what the scheme does with ints."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Annotated, Any

import pytest
import z3

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, edited, out_of_the_loop
from kvstage_model.language.operations import Copy, HostRead, HostWrite, Launch, Operation, SyncStream, reads, writes
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schemes import registry
from kvstage_model.symbolic import scheme_model as module
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel
from kvstage_model.symbolic.world import IMPURE
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


@pytest.mark.parametrize("function", [stateful(2), slot_by_turn])
def test_a_step_that_keeps_a_state_is_refused(function: SchemeFunction) -> None:
    with pytest.raises(UnsupportedError, match=IMPURE):
        SchemeModel(function)


def test_a_list_of_rows_is_refused_by_name() -> None:
    def lists(runs: Runs) -> Scheme:
        rows: Any = [STAGE.at(0, 0, 1)]
        return Scheme("lists", (STAGE,), runs.number, lambda i: [Launch("a", reads=rows)])

    with pytest.raises(UnsupportedError, match="a Launch whose reads is a list, which may change: make it a tuple"):
        SchemeModel(lists)


def test_without_the_second_run_a_state_goes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "identical", lambda world, one, other: True)
    assert [phase.name for phase in SchemeModel(slot_by_turn).phases] == ["loop"]


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


@pytest.mark.parametrize("number", [True, 0.5, "0", None, z3.Int("raw"), lambda i: i % 2 == 0])
def test_rows_that_are_no_numbers_are_refused(number: Any) -> None:
    """A truth as a slot compares by identity: two steps would never touch a common row."""

    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("truth", (STAGE,), n, lambda i: [HostWrite(STAGE.at(number(i) if callable(number) else number, 0, 1))])

    with pytest.raises(UnsupportedError, match="must be integers"):
        SchemeModel(scheme)


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
