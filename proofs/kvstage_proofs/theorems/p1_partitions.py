"""P1, the contract of a partition: what every scheme over "any runs" assumes, proved of each way to cut a transfer."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import TypeAlias

import z3

from kvstage_model.language.contract import Clause, contract, distinct
from kvstage_model.language.parameters import declared
from kvstage_model.language.partitions import Piece, Pieces
from kvstage_model.ordering.trace import Trace
from kvstage_model.search.instances import MOST_ROWS, small_values
from kvstage_model.search.search import Counterexample
from kvstage_model.search.wording import value_in_words
from kvstage_model.symbolic.arguments import symbolic_arguments
from kvstage_model.symbolic.world import World
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query

Cut: TypeAlias = Callable[..., Pieces[Piece]]
Clauses: TypeAlias = Callable[[Pieces[Piece], int, int, int, int], Iterator[Clause]]

CLAIM = (
    "The parts are disjoint, in order and cover the transfer; each run lies inside one block, at the address of its rows, the "
    "first and the last clipped: for every length, history, block size and table. Where no block occurs twice in the "
    "table, different rows lie at different addresses, and no two runs share a row."
)


def queries(cut: Cut) -> Iterator[Query]:
    """One query for each clause of the contract, over all paths of the partition."""
    yield from _queries(cut, False, lambda parts, i, j, row, _: contract(parts, i, j, row))
    yield from _queries(cut, True, distinct)


def _queries(cut: Cut, no_block_twice: bool, clauses: Clauses) -> Iterator[Query]:
    world = World()
    i, j, row, other = (world.integer(name) for name in ("i", "j", "p", "q"))
    parameters = tuple(replace(parameter, distinct=no_block_twice) for parameter in declared(cut))
    arguments = symbolic_arguments(world, parameters, world.integer("call"))

    def run() -> list[tuple[str, Term, Term]]:
        found = clauses(cut(**arguments), i, j, row, other)
        return [(clause.name, world.formula(clause.premise), world.formula(clause.conclusion)) for clause in found]

    cases: dict[str, list[tuple[Term, Term]]] = {}
    for taken, found in [world.follow(path, run) for path in world.paths(run)]:
        for name, premise, conclusion in found:
            cases.setdefault(name, []).append((z3.And(taken, premise), z3.Not(conclusion)))
    for name, met in cases.items():
        negated_goal = z3.Or([z3.And(premise, broken) for premise, broken in met])
        yield Query(name, world.facts, z3.Or([premise for premise, _ in met]), negated_goal, world.hint, must_hold=True)


def search(cut: Cut, most: int | None) -> Counterexample | None:
    """The first small transfer that the partition cuts against its contract."""
    parameters = tuple(replace(parameter, distinct=True) for parameter in declared(cut))
    for arguments in islice(small_values(parameters, MOST_ROWS), most):
        parts = cut(**arguments)
        every, rows = range(parts.number), range(parts.length)
        for i, j, row, other in product(every, every, rows, rows):
            for clause in (*contract(parts, i, j, row), *distinct(parts, i, j, row, other)):
                if clause.premise and not clause.conclusion:
                    wrong = f"not so, for parts {i} and {j} and rows {row} and {other}: {clause.name}"
                    words = ", ".join(f"{name} = {value_in_words(value)}" for name, value in arguments.items())
                    return Counterexample(words, parts.number, Trace((), ()), wrong)
    return None


P1 = Theorem("P1", "the contract of a partition", CLAIM, queries, search)
