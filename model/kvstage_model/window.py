"""The window: a few symbolic steps of a scheme, with every axiom for every pair of their operations.

Two steps stand for any two steps of any length: what is proved of them holds for all pairs. Any subset of the true
facts is enough for a proof, so a window need not contain all operations; it only proves less when it lacks some.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import z3

from .axioms import Moment, edges, own
from .model import Instance, SchemeModel
from .operations import Rows, overlap
from .symbolic import Term


class Window:
    """Instances of one model, and all that the axioms say of them."""

    def __init__(self, model: SchemeModel) -> None:
        self.model, self.world = model, model.world
        self.instances: list[Instance] = []

    def add(self, name: str, call: int, phase: int, step: int) -> list[Instance]:
        """Put all operations of one step into the window."""
        added = self.model.instances(name, call, phase, step)
        self.instances += added
        return added

    def add_single_phases(self, *calls: int) -> None:
        """Put in what these calls do once, such as the epilogue: it lies between the steps of two phases or calls."""
        zero = self.world.index(self.world.term(0))
        for number, phase in enumerate(self.model.phases):
            for call in calls if phase.single else ():
                present = (i.site.phase == number and i.call.eq(self.world.term(call)) for i in self.instances)
                if not any(present):
                    self.add(f"{phase.name} of {self.world.term(call)}", call, number, zero)

    def facts(self) -> list[Term]:
        """Everything that is known: of the indices, of each operation's moments, and of every pair of operations."""
        found = [z3.Implies(instance.exists, z3.And(list(_own(instance)))) for instance in self.instances]
        for first, second in permutations(self.instances, 2):
            implied = [
                z3.Implies(self.world.formula(edge.when), first.moment(edge.earlier) <= second.moment(edge.later))
                for edge in edges(first.operation, second.operation)
            ]
            found.append(z3.Implies(z3.And(self.before(first, second), first.exists, second.exists), z3.And(implied)))
        for first, second in combinations(self.instances, 2):
            same_moments = [first.moment(moment) == second.moment(moment) for moment in Moment]
            found.append(z3.Implies(z3.And(self.same(first, second), first.exists), z3.And(same_moments)))
        return [*self.world.facts, *found]

    def before(self, first: Instance, second: Instance) -> Term:
        """Whether the host issues the first one before the second one."""
        in_step = z3.BoolVal(first.site.position < second.site.position, self.world.context)
        in_phase = z3.Or(first.step < second.step, z3.And(first.step == second.step, in_step))
        if first.site.phase != second.site.phase:
            in_phase = z3.BoolVal(first.site.phase < second.site.phase, self.world.context)
        return z3.Or(first.call < second.call, z3.And(first.call == second.call, in_phase))

    def same(self, first: Instance, second: Instance) -> Term:
        """Whether two instances are one operation."""
        at_one_site = first.site.phase == second.site.phase and first.site.position == second.site.position
        if not at_one_site:
            return z3.BoolVal(False, self.world.context)
        return z3.And(first.call == second.call, first.step == second.step)

    def overlap(self, first: Rows, second: Rows) -> Term:
        """Whether two runs have a row in common."""
        return self.world.formula(overlap(first, second))

    def holds_at_once(self, first: Instance, second: Instance) -> Term:
        """Whether the times of two operations overlap."""
        return z3.And(first.begin < second.end, second.begin < first.end)


def _own(instance: Instance) -> Iterator[Term]:
    for rule in own(instance.operation):
        earlier, later = instance.moment(rule.earlier), instance.moment(rule.later)
        yield earlier < later if rule.strict else earlier <= later


def exist(instances: Sequence[Instance]) -> Term:
    """That all of them exist."""
    return z3.And([instance.exists for instance in instances])
