"""T1, no hazard: two accesses to a common row, at least one a write, never overlap in time."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations_with_replacement, product

import z3

from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.races import conflicts
from kvstage_model.search.faults import hazard
from kvstage_model.search.search import search
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "Whatever the driver does within the axioms, two accesses to a common row, at least one of them a write, never overlap: "
    "for every length, history, block size and table, any number of calls, and a caller who uses the copy and overwrites "
    "the original as soon as a call has returned."
)


MOST_PAIRS = 600
"""Pairs of operations of two steps that T1 asks about: some 25 operations, all on one buffer, take a quarter of a minute."""
REACH = 3
"""How far a window is widened before the search takes over."""


def queries(function: SchemeFunction) -> Iterator[Query]:
    """One query for each pair of conflicting operations of two arbitrary steps, of one call and of two."""
    model = SchemeModel(function)
    phases = range(len(model.phases))
    for first, second in combinations_with_replacement(phases, 2):
        yield from _Pairs(model, first, second, calls=1).queries()
    for first, second in product(phases, repeat=2):
        yield from _Pairs(model, first, second, calls=2).queries()


class _Pairs:
    """Two arbitrary steps of two phases, and all pairs of their operations, in windows of growing reach."""

    def __init__(self, model: SchemeModel, first: int, second: int, calls: int) -> None:
        self.model, self.first, self.second, self.calls = model, first, second, calls
        self._opened: dict[int, tuple[Window, list[Instance], list[Instance], list[Term]]] = {}

    def queries(self) -> Iterator[Query]:
        _, mine, other, _ = self._open(0, with_facts=False)
        met = [(a, b) for a, b in product(range(len(mine)), range(len(other))) if _may_clash(mine[a], other[b])]
        if len(met) > MOST_PAIRS:
            raise UnsupportedError(
                f"{len(met)} pairs of operations of two steps touch one buffer, and T1 asks about up to {MOST_PAIRS}: "
                "let a step do less, or give what never meets a buffer of its own"
            )
        yield from (self._query(a, b, 0) for a, b in met)

    def _open(self, reach: int, with_facts: bool = True) -> tuple[Window, list[Instance], list[Instance], list[Term]]:
        if reach in self._opened and (self._opened[reach][3] or not with_facts):
            return self._opened[reach]
        world = self.model.world
        call, later = world.integer("call"), world.integer("later call" if self.calls == 2 else "call")
        window = Window(self.model)
        mine = window.add("i", call, self.first, world.integer("i"))
        other = window.add("j", later, self.second, world.integer("j"))
        window.add_single_phases(call, later)
        if reach:
            window.widen([*mine, *other], reach)
        self._opened[reach] = window, mine, other, window.facts() if with_facts else []
        return self._opened[reach]

    def _query(self, a: int, b: int, reach: int) -> Query:
        window, mine, other, facts = self._open(reach)
        world, first, second = self.model.world, mine[a], other[b]
        in_order = first.call < second.call if self.calls == 2 else z3.BoolVal(True, world.context)
        premise = z3.And(in_order, window.before(first, second), first.exists, second.exists)
        name = f"{self._word(first, 'i')} and {self._word(second, 'j')}{' of a later call' if self.calls == 2 else ''}"
        negated_goal = z3.And(_clash(window, first, second), window.holds_at_once(first, second))
        strengthened = partial(self._query, a, b, reach + 1) if reach < REACH else None
        return Query(name, facts, premise, negated_goal, self.model.world.hint, strengthened=strengthened)

    def _word(self, instance: Instance, step: str) -> str:
        return f"{type(instance.operation).__name__} of {self.model.phases[instance.site.phase].name}[{step}]"


def _may_clash(first: Instance, second: Instance) -> bool:
    """Whether two operations touch one buffer, at least one of them writing."""
    return any(mine.buffer.name == other.buffer.name for mine, other in conflicts(first.operation, second.operation))


def _clash(window: Window, first: Instance, second: Instance) -> Term:
    """That two operations touch a common row, at least one of them writing."""
    pairs = [pair for pair in conflicts(first.operation, second.operation) if pair[0].buffer.name == pair[1].buffer.name]
    return z3.Or([window.meet(mine, other) for mine, other in pairs])


T1 = Theorem[SchemeFunction]("T1", "no hazard", CLAIM, queries, lambda function, most: search(function, hazard, most))
