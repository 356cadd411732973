"""P1, the contract of a partition: what every scheme over "any runs" assumes, proved of each way to cut a transfer."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import z3

from kvstage_model.arguments import any_rows
from kvstage_model.parameters import declared, small_values
from kvstage_model.runs import Clause, PagedRows, Runs, contract, distinct_runs
from kvstage_model.search import MOST_ROWS, Counterexample, value_in_words
from kvstage_model.symbolic import Term
from kvstage_model.trace import Trace
from kvstage_model.world import World

from .obligation import Theorem
from .query import Query

Cut: TypeAlias = Callable[[PagedRows], Runs]
Clauses: TypeAlias = Callable[[Runs, int, int, int], list[Clause]]

CLAIM = (
    "The runs are disjoint, in order and cover the transfer; each lies inside one block, at the address of its rows, the "
    "first and the last clipped: for every length, history, block size and table. Where no block occurs twice in the "
    "table, no two runs share a row of the pool."
)


def queries(cut: Cut) -> Iterator[Query]:
    """One query for each clause of the contract, over all paths of the partition."""
    yield from _queries(cut, False, lambda runs, i, j, position: list(contract(runs, i, j, position)))
    yield from _queries(cut, True, lambda runs, i, j, position: [distinct_runs(runs, i, j)])


def _queries(cut: Cut, distinct: bool, clauses: Clauses) -> Iterator[Query]:
    world = World()
    i, j, position = (world.integer(name) for name in ("i", "j", "p"))
    rows = any_rows(world, "rows", world.integer("call"), distinct)

    def run() -> list[tuple[str, Term, Term]]:
        found = clauses(cut(rows), i, j, position)
        return [(clause.name, world.formula(clause.premise), world.formula(clause.conclusion)) for clause in found]

    cases: dict[str, list[tuple[Term, Term]]] = {}
    for taken, found in [world.follow(path, run) for path in world.paths(run)]:
        for name, premise, conclusion in found:
            cases.setdefault(name, []).append((z3.And(taken, premise), z3.Not(conclusion)))
    for name, met in cases.items():
        doubt = z3.Or([z3.And(premise, broken) for premise, broken in met])
        yield Query(name, world.facts, z3.Or([premise for premise, _ in met]), doubt, must_hold=True)


def search(cut: Cut) -> Counterexample | None:
    """The first small transfer that the partition cuts against its contract."""
    (parameter,) = declared(cut)
    for arguments in small_values((replace(parameter, distinct=True),), MOST_ROWS):
        rows: PagedRows = arguments[parameter.name]
        runs = cut(rows)
        every = range(runs.number)
        for i, j, position in product(every, every, range(runs.length)):
            for clause in (*contract(runs, i, j, position), distinct_runs(runs, i, j)):
                if clause.premise and not clause.conclusion:
                    wrong = f"not so, for runs {i} and {j} and row {position}: {clause.name}"
                    return Counterexample(value_in_words(rows), runs.number, Trace((), ()), wrong)
    return None


P1 = Theorem("P1", "the contract of a partition", CLAIM, queries, search)
