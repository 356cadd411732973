"""What is assumed of symbolic arguments is true of every concrete one, and no more than the contract."""

from itertools import product
from typing import Any

import pytest
import z3
from hypothesis import given, settings

from kvstage_model.arguments import AnyPartition, any_rows, symbolic_arguments
from kvstage_model.contract import contract
from kvstage_model.parameters import Parameter
from kvstage_model.runs import PagedRows, Run, Runs, by_block, by_row
from kvstage_model.world import World
from tests.model.programs import transfers


def holds(world: World, pinned: list[Any]) -> bool:
    """Whether the assumptions allow these values."""
    solver = z3.Solver(ctx=world.context)
    solver.add(*world.facts, *pinned)
    return bool(solver.check() == z3.sat)


def pins(world: World, symbolic: Any, concrete: Any) -> list[Any]:
    """That a symbolic value, or each of a tuple of them, is the concrete one."""
    pairs = zip(symbolic, concrete, strict=True) if isinstance(symbolic, tuple) else [(symbolic, concrete)]
    return [world.term(a) == b for a, b in pairs]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(transfers())
def test_every_transfer_meets_what_is_assumed_of_any_rows(transfer: tuple[PagedRows, tuple[int, ...]]) -> None:
    rows, table = transfer
    world = World()
    any_: Any = any_rows(world, "rows", world.integer("call"), distinct=len(set(table)) == len(table))
    blocks = range((rows.stop - 1) // rows.block_size + 1) if rows.start < rows.stop else range(0)
    pinned = pins(world, (any_.num_blocks, any_.block_size), (rows.num_blocks, rows.block_size))
    pinned += pins(world, (any_.start, any_.stop), (rows.start, rows.stop))
    pinned += [pin for k in blocks for pin in pins(world, any_.table(world.index(world.term(k))), table[k])]
    assert holds(world, pinned)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(transfers())
def test_every_partition_meets_what_is_assumed_of_any_runs(transfer: tuple[PagedRows, tuple[int, ...]]) -> None:
    for runs in (by_row(transfer[0]), by_block(transfer[0])):
        world = World()
        any_ = AnyPartition(world, "runs", world.integer("call"), Runs, Run, distinct=False).parts
        shared = ("number", "length", "longest", "num_blocks", "block_size")
        pinned = pins(world, tuple(getattr(any_, name) for name in shared), tuple(getattr(runs, name) for name in shared))
        for i in range(min(runs.number, 3)):
            run, concrete = any_.part(world.index(world.term(i))), runs.part(i)
            fields = ("slot", "start", "count", "position")
            pinned += pins(world, tuple(getattr(run, f) for f in fields), tuple(getattr(concrete, f) for f in fields))
        for position in range(min(runs.length, 3)):
            p = world.index(world.term(position))
            pinned += pins(world, any_.address(p), runs.address(position)) + pins(world, any_.holder(p), runs.holder(position))
        assert holds(world, pinned)


BROKEN: dict[str, Any] = {
    "a start below 0": lambda rows: rows.start == -1,
    "a stop before the start": lambda rows: rows.stop < rows.start,
    "blocks of no row": lambda rows: rows.block_size == 0,
    "a block outside the pool": lambda rows: (rows.table(0) >= rows.num_blocks) & (rows.start == 0) & (rows.stop == 1),
    "a negative block": lambda rows: (rows.table(1) < 0) & (rows.start == 0) & (rows.stop == rows.block_size + 1),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_what_no_transfer_has_is_ruled_out(broken: Any) -> None:
    world = World()
    rows = any_rows(world, "rows", world.integer("call"), distinct=False)
    condition = world.formula(broken(rows))
    assert world.impossible(condition)


def test_a_block_may_occur_twice_unless_the_table_is_distinct() -> None:
    def twice(distinct: bool) -> bool:
        world = World()
        rows: Any = any_rows(world, "rows", world.integer("call"), distinct)
        same = world.formula(rows.table(0) == rows.table(1))
        return not world.impossible(same, world.term(rows.start) == 0, world.formula(rows.stop > rows.block_size))

    assert twice(distinct=False)
    assert not twice(distinct=True)


def test_a_block_that_the_transfer_does_not_touch_is_anything() -> None:
    world = World()
    rows: Any = any_rows(world, "rows", world.integer("call"), distinct=True)
    assert not world.impossible(world.term(rows.table(5)) == -7, world.term(rows.stop) == 1)


def test_the_pool_is_one_in_all_calls_and_the_transfer_differs() -> None:
    world = World()
    first, second = (symbolic_arguments(world, (Parameter("rows", PagedRows),), world.integer(name)) for name in ("c", "d"))
    mine, other = first["rows"], second["rows"]
    assert world.term(mine.block_size).eq(world.term(other.block_size))
    assert not world.impossible(world.term(mine.start) != world.term(other.start))


@pytest.mark.parametrize("distinct", [False, True])
def test_the_contract_holds_of_any_runs_wherever_it_is_asked(distinct: bool) -> None:
    world = World()
    runs: Runs = AnyPartition(world, "runs", world.integer("call"), Runs, Run, distinct).parts
    i, j, p = (world.integer(name) for name in "ijp")
    runs.part(i), runs.part(j), runs.address(p)
    checked = 0
    for (a, b), position in product(((i, j), (j, i)), (p,)):
        for clause in contract(runs, a, b, position):
            premise, conclusion = world.formula(clause.premise), world.formula(clause.conclusion)
            assert world.impossible(premise, z3.Not(conclusion)), clause.name
            assert not world.impossible(premise), f"{clause.name}: its premise can't hold"
            checked += 1
    assert checked == 22


def test_a_number_is_at_least_what_is_declared() -> None:
    world = World()
    (number,) = symbolic_arguments(world, (Parameter("k", int, least=2),), world.integer("call")).values()
    assert world.impossible(world.term(number) < 2)
    assert not world.impossible(world.term(number) == 2)
