"""P1, the contract of a partition: what every scheme over "any runs" assumes, proved of each way to cut a transfer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import z3
from kvstage_model.arguments import any_rows
from kvstage_model.runs import Clause, PagedRows, Runs, contract, distinct_runs
from kvstage_model.world import World

from .query import Query

Cut: TypeAlias = Callable[[PagedRows], Runs]

CLAIM = (
    "The runs are disjoint, in order and cover the transfer; each lies inside one block, at the address of its rows, the "
    "first and the last clipped: for every length, history, block size and table. Where no block occurs twice in the "
    "table, no two runs share a row of the pool."
)




def contract_queries(cut: Cut) -> Iterator[Query]:
    """One query for each clause of the contract, on each path of the partition."""
    yield from _queries(cut, False, lambda runs, i, j, position: list(contract(runs, i, j, position)))
    yield from _queries(cut, True, lambda runs, i, j, position: [distinct_runs(runs, i, j)])


def _queries(cut: Cut, distinct: bool, clauses: Callable[[Runs, int, int, int], list[Clause]]) -> Iterator[Query]:
    world = World()
    i, j, position = (world.integer(name) for name in ("i", "j", "p"))
    rows = any_rows(world, "rows", world.integer("call"), distinct)

    def run() -> list[tuple[str, z3.BoolRef, z3.BoolRef]]:
        found = clauses(cut(rows), i, j, position)
        return [(clause.name, world.formula(clause.premise), world.formula(clause.conclusion)) for clause in found]

    for path in world.paths(run):
        taken, found = world.follow(path, run)
        for name, premise, conclusion in found:
            yield Query(name, world.facts, z3.And(taken, premise), z3.Not(conclusion))
