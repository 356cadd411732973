"""The scheme in the solver does what the scheme does with ints."""

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any

import z3

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, edited, out_of_the_loop
from kvstage_model.language.operations import (
    Copy,
    HostRead,
    HostWrite,
    Operation,
    SyncStream,
    reads,
    writes,
)
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schemes import registry
from kvstage_model.symbolic.scheme_model import SchemeModel
from tests.support.loops import loop, staged
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


def test_a_loop_that_is_right_is_taken_as_it_is() -> None:
    assert SchemeModel(loop(staged, direction=Direction.READ)).names == ("loop", "caller")
