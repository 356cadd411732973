"""P2, merged runs: by induction over the fold that makes them, with the functions that it uses.

Base: a run of `by_block`, seen in a pool of one slot, is *good*: each of its rows lies at its address, inside the pool.
Step: if `joins` holds, `joined` is good if both runs are, holds the rows of both and no others, and stays between its
neighbours. So every list that the fold makes fulfils the contract that `by_block` fulfils (P1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from kvstage_model.language.merged_runs import in_one_slot, joined, joins
from kvstage_model.language.partitions import Run
from kvstage_model.symbolic.world import World
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "Runs merged across blocks are disjoint, in order, cover the transfer, and each of their rows lies at its address: for "
    "every length, history, block size, table and limit."
)


@dataclass(frozen=True)
class Fold:
    """The functions of a fold of runs."""

    joins: Callable[[Run, Run, int], Any] = joins
    joined: Callable[[Run, Run], Run] = joined
    in_one_slot: Callable[[Run, int], Run] = in_one_slot


def queries(fold: Fold) -> Iterator[Query]:
    """Base and step of the induction."""
    yield from _base(fold)
    yield from _step(fold)


def _run(world: World, name: str) -> Run:
    return Run(*(world.integer(f"{name}.{field}") for field in ("position", "count", "slot", "start")))


def _base(fold: Fold) -> Iterator[Query]:
    world = World()
    size, blocks, r = (world.integer(name) for name in ("block_size", "num_blocks", "r"))
    block, row = world.function("block", 1), world.function("row", 1)
    run = _run(world, "run")
    world.at_least(size, 1)
    world.assume(run.count >= 1, run.start >= 0, run.start + run.count <= size, run.slot >= 0, run.slot < blocks)
    flat = fold.in_one_slot(run, size)
    at = run.position + r
    address = (block(at) == run.slot) & (row(at) == run.start + r)
    there = flat.start + r == block(at) * size + row(at)
    inside = (flat.slot == 0) & (flat.start >= 0) & (flat.start + flat.count <= blocks * size)
    reached = (r >= 0) & (r < run.count)
    yield _query(world, "each row of a block's run lies at its place in the pool of one slot", reached & address, there)
    yield _query(world, "a block's run lies inside the pool of one slot", run.count >= 1, inside)
    same = (flat.position == run.position) & (flat.count == run.count)
    yield _query(world, "a block's run keeps its rows", run.count >= 1, same)


def _step(fold: Fold) -> Iterator[Query]:
    world = World()
    last, following = _run(world, "last"), _run(world, "following")
    most, whole, r, p = (world.integer(name) for name in ("most", "rows of the pool", "r", "p"))
    flat = world.function("place", 1)
    for run in (last, following):
        world.assume(run.count >= 1, run.slot == 0, run.start >= 0, run.start + run.count <= whole)
        for row in (r, r - last.count):
            world.assume_implied((row >= 0) & (row < run.count), flat(run.position + row) == run.start + row)
    both = fold.joined(last, following)
    met = fold.joins(last, following, most)
    reached = met & (r >= 0) & (r < both.count)
    yield _query(world, "each row of a joined run lies at its place", reached, flat(both.position + r) == both.start + r)
    inside = (both.slot == 0) & (both.start >= 0) & (both.start + both.count <= whole)
    yield _query(world, "a joined run lies inside the pool", met, inside)
    yield _query(world, "a joined run is no longer than allowed", met, (both.count >= 1) & (both.count <= most))
    in_last = (last.position <= p) & (p < last.position + last.count)
    in_following = (following.position <= p) & (p < following.position + following.count)
    in_both = (both.position <= p) & (p < both.position + both.count)
    yield _query(world, "a joined run holds the rows of both and no others", met, in_both == (in_last | in_following))
    before, after = world.integer("end of the run before"), world.integer("start of the run after")
    between = met & (before <= last.position) & (following.position + following.count <= after)
    apart = (before <= both.position) & (both.position + both.count <= after)
    yield _query(world, "a joined run stays between its neighbours", between, apart)


def _query(world: World, name: str, premise: Any, conclusion: Any) -> Query:
    negated_goal: Term = z3.Not(world.formula(conclusion))
    return Query(name, world.facts, world.formula(premise), negated_goal, world.hint, must_hold=True)


P2 = Theorem[Fold]("P2", "merged runs", CLAIM, queries, lambda _fold, _most: None)
