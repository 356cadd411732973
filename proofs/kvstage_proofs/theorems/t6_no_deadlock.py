"""T6, no deadlock: every wait refers to work issued before it, so a schedule always exists.

The schedule in which everything happens as soon as it was issued satisfies every axiom: ranks in issue order order all
moments, and no axiom demands that something issued later comes first. So the host never blocks for good. No wait of the
language is for what is issued later, so a scheme alone can't break this: an axiom that is added can.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import z3

from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.axioms import Moment, edges, own
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.world import World
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "Whatever a wait waits for was issued before it: the schedule in which everything happens at its issue satisfies every "
    "axiom, for every length, history, block size and table, any number of calls."
)

AT = {Moment.ISSUE: 0, Moment.BEGIN: 0, Moment.END: 1}
"""When a moment comes in that schedule, in halves of a rank."""


def queries(function: SchemeFunction) -> Iterator[Query]:
    """One query for each two steps: no axiom between their operations is violated by the ranks."""
    model = SchemeModel(function)
    phases = range(len(model.phases))
    for first, second in combinations_with_replacement(phases, 2):
        yield _ranked(model, first, second, calls=1)
    for first, second in product(phases, repeat=2):
        yield _ranked(model, first, second, calls=2)


def _ranked(model: SchemeModel, first: int, second: int, calls: int) -> Query:
    world, window = model.world, Window(model)
    call, later = world.integer("call"), world.integer("later call" if calls == 2 else "call")
    mine = window.add("i", call, first, world.integer("i"))
    other = window.add("j", later, second, world.integer("j"))
    ranks, violated, met = [], [], []
    for a, b in product(mine, other):
        issued = z3.And(a.exists, b.exists, window.before(a, b))
        ranks.append(z3.Implies(issued, _rank(a) < _rank(b)))
        met.append(issued)
        violated += [
            z3.And(issued, world.formula(edge.when), _time(a, edge.earlier) > _time(b, edge.later))
            for edge in edges(a.operation, b.operation)
        ]
    for a in mine:
        violated += [z3.And(a.exists, _time(a, rule.earlier) > _time(a, rule.later)) for rule in own(a.operation)]
    order = world.term(call) < world.term(later) if calls == 2 else z3.BoolVal(True, world.context)
    names = f"{model.names[first]} and {model.names[second]}{' of a later call' if calls == 2 else ''}"
    premise = z3.And(order, _any(world, met), *ranks)
    return Query(f"{names}: issue order satisfies every axiom", world.facts, premise, _any(world, violated), world.hint)


def _any(world: World, terms: list[Term]) -> Term:
    """That one of them holds; if a phase issues nothing, there is none, and so no context but the world's."""
    return z3.Or(terms) if terms else z3.BoolVal(False, world.context)


def _rank(instance: Instance) -> Term:
    """The place of an operation in issue order."""
    return z3.Int(f"rank of {instance.name}", instance.exists.ctx)


def _time(instance: Instance, moment: Moment) -> Term:
    return 2 * _rank(instance) + AT[moment]


T6 = Theorem[SchemeFunction]("T6", "no deadlock", CLAIM, queries, lambda _function, _most: None)
