"""The window says of two symbolic steps what the race finder says of any two concrete ones."""

from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any

import pytest
import z3

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostWrite, Operation, SyncStream
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.axioms import Edge, Moment
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore
from kvstage_model.symbolic import window as module
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window, exist
from tests.support.terms import equal

STAGE = Buffer("stage", Memory.PINNED, 4, 4)
MOMENTS = tuple(Moment)


def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
    """Two streams, a guard, and an epilogue: every kind of edge."""

    def step(i: int) -> Iterator[Operation]:
        yield Copy("a", STAGE.at(0, 0, 1), STAGE.at(1, 0, 1))
        if i % 2 == 1:
            yield SyncStream("a")
        yield Copy("b", STAGE.at(0, 0, 1), STAGE.at(2, 0, 1))
        yield HostWrite(STAGE.at(3, 0, 1))

    return Scheme("window", (STAGE,), n, step, (SyncStream("b"),))


def two_steps(first: int, second: int, n: int, calls: int) -> tuple[Window, list[tuple[Instance, Instance]], Any]:
    """A window over the loop's steps i and j, its pairs that exist at these values, and a solver that fixes them."""
    model = SchemeModel(scheme)
    world, window = model.world, Window(model)
    call, other = world.integer("call"), world.integer("other")
    mine = window.add("i", call, 0, world.integer("i"))
    theirs = window.add("j", other, 0, world.integer("j"))
    window.add_single_phases(call, other)
    solver = z3.Solver(ctx=world.context)
    solver.add(*window.facts())
    values = {"call": 0, "other": calls - 1, "i": first, "j": second, "parameter n": n}
    solver.add(*equal(world, values, "call", "other"))
    return window, [(a, b) for a in mine for b in theirs], solver


def forced(solver: Any, *conditions: Any) -> bool:
    return bool(solver.check(z3.Not(z3.And(*conditions))) == z3.unsat)


def together(solver: Any, *instances: Instance) -> bool:
    return bool(solver.check(*(instance.exists for instance in instances)) == z3.sat)


@pytest.mark.parametrize(("first", "second", "calls"), [(0, 1, 1), (1, 2, 1), (0, 3, 1), (1, 1, 2), (2, 0, 2)])
def test_what_the_window_orders_the_race_finder_orders_too(first: int, second: int, calls: int) -> None:
    n = 4
    _, pairs, solver = two_steps(first, second, n, calls)
    program = unroll([scheme(n)] * calls)
    order = HappensBefore(program)
    where = {
        (issued.call, issued.step, in_words(issued.operation)): at for at, issued in enumerate(program) if issued.phase == "loop"
    }
    orders = 0
    for a, b in pairs:
        if not together(solver, a, b):
            continue
        mine = where[0, first, in_words(a.operation)]
        other = where[calls - 1, second, in_words(b.operation)]
        for early in MOMENTS:
            for late in MOMENTS:
                if forced(solver, a.moment(early) <= b.moment(late)):
                    assert order.ordered(mine, early, other, late), "the window claims an order that no axiom forces"
                    orders += 1
    assert orders > 20


def in_words(operation: Operation) -> str:
    return f"{type(operation).__name__} {getattr(operation, 'stream', '')}"


def test_a_wait_and_the_stream_order_what_the_host_does_later() -> None:
    _, pairs, solver = two_steps(1, 2, 4, 1)
    named = {(in_words(a.operation), in_words(b.operation)): (a, b) for a, b in pairs}
    waited, write = named["Copy a", "HostWrite "]
    assert forced(solver, waited.end <= write.begin), "step 1 waits for stream a"
    free, write = named["Copy b", "HostWrite "]
    assert not forced(solver, free.end <= write.begin), "nobody waits for stream b inside the loop"
    earlier, later = named["Copy b", "Copy b"]
    assert forced(solver, earlier.end <= later.begin), "one stream keeps its order"


def test_a_step_that_does_not_exist_orders_nothing() -> None:
    _, pairs, solver = two_steps(1, 9, 4, 1)
    assert solver.check() == z3.sat
    for a, b in pairs:
        assert not together(solver, a, b)
        assert not forced(solver, a.end <= b.begin)


def test_a_wait_that_does_not_exist_orders_nothing() -> None:
    """Step 0 has no wait. Were the wait's existence an assumption, it would order all the same, or rule step 0 out."""
    _, pairs, solver = two_steps(0, 1, 4, 1)
    named = {(in_words(a.operation), in_words(b.operation)): (a, b) for a, b in pairs}
    copy, write = named["Copy a", "HostWrite "]
    assert together(solver, copy, write)
    (wait, _) = named["SyncStream a", "Copy a"]
    assert not together(solver, wait)


def test_an_epilogue_lies_between_two_calls() -> None:
    _, pairs, solver = two_steps(1, 0, 4, 2)
    named = {(in_words(a.operation), in_words(b.operation)): (a, b) for a, b in pairs}
    copy, write = named["Copy b", "HostWrite "]
    assert forced(solver, copy.end <= write.begin)


def test_without_the_single_phases_two_calls_are_not_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Window, "add_single_phases", lambda self, *calls: None)
    _, pairs, solver = two_steps(1, 0, 4, 2)
    named = {(in_words(a.operation), in_words(b.operation)): (a, b) for a, b in pairs}
    copy, write = named["Copy b", "HostWrite "]
    assert not forced(solver, copy.end <= write.begin)


def test_single_phases_are_put_in_once_a_call() -> None:
    model = SchemeModel(scheme)
    world, window = model.world, Window(model)
    window.add("i", world.integer("call"), 1, world.integer("i"))
    window.add_single_phases(world.integer("call"), world.integer("other"), world.integer("other"))
    epilogues = [instance for instance in window.instances if instance.site.phase == 1]
    assert [str(instance.call) for instance in epilogues] == ["call", "other"]


def test_the_same_step_of_the_same_call_is_the_same_operation() -> None:
    window, pairs, solver = two_steps(1, 1, 4, 1)
    assert sum(forced(solver, window.same(a, b)) for a, b in pairs) == 4
    for a, b in pairs:
        if forced(solver, window.same(a, b)):
            assert forced(solver, *(a.moment(moment) == b.moment(moment) for moment in Moment))


def test_program_order_is_call_then_phase_then_step_then_place() -> None:
    model = SchemeModel(scheme)
    world, window = model.world, Window(model)
    call, other = world.integer("call"), world.integer("other")
    zero = world.index(world.term(0))
    added = [
        (a, number, step) for a, number, step in ((call, 0, world.integer("i")), (call, 1, zero), (other, 0, world.integer("j")))
    ]
    for a, number, step in added:
        window.add(f"{number} {world.term(step)}", a, number, step)
    values = {"call": 0, "other": 1, "i": 3, "j": 0}
    solver = z3.Solver(ctx=world.context)
    solver.add(*equal(world, values, "call", "other"))
    for first, second in combinations(window.instances, 2):
        assert forced(solver, window.before(first, second))
        assert forced(solver, z3.Not(window.before(second, first)))


def test_facts_can_hold_and_an_edge_too_many_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, pairs, solver = two_steps(0, 1, 4, 1)
    assert together(solver, pairs[0][0], pairs[-1][1])
    real = module.edges

    def backwards(first: Operation, second: Operation) -> Iterator[Edge]:
        yield from real(first, second)
        yield Edge("wrong", Moment.BEGIN, Moment.END) if isinstance(second, SyncStream) else Edge("wrong", Moment.END, Moment.BEGIN)

    monkeypatch.setattr(module, "edges", backwards)
    _, pairs, solver = two_steps(0, 1, 4, 1)
    copy = next(a for a, b in pairs if in_words(a.operation) == "Copy b")
    write = next(b for a, b in pairs if in_words(b.operation) == "HostWrite ")
    assert forced(solver, z3.Implies(exist([copy, write]), copy.end <= write.begin))
