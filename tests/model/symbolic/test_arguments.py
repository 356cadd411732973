"""What is assumed of symbolic arguments is true of every concrete one, and no more than the contract."""

from itertools import product
from typing import Any

import pytest
import z3
from hypothesis import given, settings

from kvstage_model.language.contract import contract, distinct
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Parameter
from kvstage_model.language.partitions import Piece, Pieces, Run, Runs, by_block, by_chunk, by_row
from kvstage_model.symbolic.arguments import AnyPartition, any_rows, symbolic_arguments
from kvstage_model.symbolic.world import World
from tests.support.programs import transfers


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


ANY = {Runs: Run, Pieces: Piece}
FIELDS = {Runs: ("slot", "start", "count", "position"), Pieces: ("count", "position")}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(transfers())
@pytest.mark.extended
def test_every_partition_meets_what_is_assumed_of_any(transfer: tuple[PagedRows, tuple[int, ...]]) -> None:
    rows, table = transfer
    blocks = {row // rows.block_size for row in range(rows.start, rows.stop)}
    once = len({table[block] for block in blocks}) == len(blocks)
    for parts in (by_row(rows), by_block(rows), by_chunk(rows, 1), by_chunk(rows, 5)):
        world, kind = World(), type(parts)
        any_ = AnyPartition(world, "parts", world.integer("call"), kind, ANY[kind], distinct=once).parts
        shared = ("number", "length", "longest", "num_blocks", "block_size")
        pinned = pins(world, tuple(getattr(any_, name) for name in shared), tuple(getattr(parts, name) for name in shared))
        for i in range(min(parts.number, 3)):
            part, concrete = any_.part(world.index(world.term(i))), parts.part(i)
            pinned += pins(world, tuple(getattr(part, f) for f in FIELDS[kind]), tuple(getattr(concrete, f) for f in FIELDS[kind]))
        for position in range(min(parts.length, 3)):
            p = world.index(world.term(position))
            pinned += pins(world, any_.address(p), parts.address(position)) + pins(world, any_.holder(p), parts.holder(position))
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


@pytest.mark.parametrize(("kind", "clauses"), [(Runs, 13), (Pieces, 10)])
@pytest.mark.parametrize("once", [False, True])
def test_the_contract_holds_of_any_partition_wherever_it_is_asked(kind: type, once: bool, clauses: int) -> None:
    world = World()
    parts: Pieces[Piece] = AnyPartition(world, "parts", world.integer("call"), kind, ANY[kind], once).parts
    i, j, p = (world.integer(name) for name in "ijp")
    parts.part(i), parts.part(j), parts.address(p)
    checked = 0
    for (a, b), position in product(((i, j), (j, i)), (p,)):
        for clause in contract(parts, a, b, position):
            premise, conclusion = world.formula(clause.premise), world.formula(clause.conclusion)
            assert world.impossible(premise, z3.Not(conclusion)), clause.name
            assert not world.impossible(premise), f"{clause.name}: its premise can't hold"
            checked += 1
    assert checked == 2 * clauses


@pytest.mark.parametrize(("kind", "clauses"), [(Runs, 2), (Pieces, 1)])
@pytest.mark.parametrize("once", [False, True])
def test_addresses_differ_where_no_block_occurs_twice_and_only_there(kind: type, once: bool, clauses: int) -> None:
    world = World()
    parts: Pieces[Piece] = AnyPartition(world, "parts", world.integer("call"), kind, ANY[kind], once).parts
    i, j, p, q = (world.integer(name) for name in "ijpq")
    found = list(distinct(parts, i, j, p, q))
    for clause in found:
        premise, conclusion = world.formula(clause.premise), world.formula(clause.conclusion)
        assert world.impossible(premise, z3.Not(conclusion)) == once, clause.name
        assert not world.impossible(premise), clause.name
    assert len(found) == clauses


def test_a_partition_differs_from_call_to_call_and_its_pool_does_not() -> None:
    world = World()
    first, second = (symbolic_arguments(world, (Parameter("pieces", Pieces),), world.integer(name)) for name in ("c", "d"))
    mine, other = first["pieces"], second["pieces"]
    assert world.term(mine.block_size).eq(world.term(other.block_size))
    assert world.term(mine.longest).eq(world.term(other.longest)), "staging slots are of one size in all calls"
    different = (mine.number != other.number, mine.part(0).count != other.part(0).count, mine.length != other.length)
    assert all(not world.impossible(world.formula(condition)) for condition in different)
    same_call = symbolic_arguments(world, (Parameter("pieces", Pieces),), world.integer("c"))["pieces"]
    assert world.impossible(world.formula(mine.part(1).count != same_call.part(1).count))


def test_a_number_is_at_least_what_is_declared() -> None:
    world = World()
    (number,) = symbolic_arguments(world, (Parameter("k", int, least=2),), world.integer("call")).values()
    assert world.impossible(world.term(number) < 2)
    assert not world.impossible(world.term(number) == 2)
