"""The window: a few symbolic steps of a scheme, with every axiom for every pair of their operations.

Two steps stand for any two steps of any length: what is proved of them holds for all pairs. Any subset of the true
facts is enough for a proof, so a window need not contain all operations; it only proves less when it lacks some.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import z3

from ..language.buffers import Access, Rows, overlap
from ..ordering.axioms import AXIOMS, Edge, Moment, edges, own
from .aims import aimed_at, aiming_at
from .scheme_model import Instance, SchemeModel
from .z3_terms import Term, conjunction, disjunction, implication


class Window:
    """Instances of one model, and all that the axioms say of them."""

    def __init__(self, model: SchemeModel) -> None:
        self.model, self.world = model, model.world
        self.instances: list[Instance] = []
        self._pairs: list[Term] = []
        self._paired = 0

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
                    self._put(call, number, self.world.term(zero))

    def at(self, call: int, phase: int, steps: Iterable[int]) -> list[Instance]:
        """The operations of some steps, put into the window if they were not in it yet."""
        found: dict[int, list[Instance]] = {}
        for step in steps:
            term = z3.simplify(self.world.term(step))
            found[term.get_id()] = self._standing(call, phase, term) or self._put(call, phase, term)
        return list(chain.from_iterable(found.values()))

    def _standing(self, call: int, phase: int, step: Term) -> list[Instance]:
        in_call = self.world.term(call)
        here = (i for i in self.instances if i.site.phase == phase and i.call.eq(in_call))
        return [i for i in here if z3.simplify(i.step).eq(step)]

    def _put(self, call: int, phase: int, step: Term) -> list[Instance]:
        name = f"step {step.get_id()} of {self.world.term(call).get_id()} in {phase}"  # as text, long terms look alike
        return self.add(name, call, phase, self.world.index(step))

    def widen(self, instances: Sequence[Instance], reach: int) -> None:
        """Put in steps that lie near those of some instances.

        Reach 1: the steps whose records their waits are meant for. Reach 2: also the steps whose waits are meant for
        theirs. Reach 3: also their neighbours.
        """
        steps = {(i.call.get_id(), i.site.phase, i.step.get_id()): i for i in instances}
        for instance in steps.values() if reach else ():
            phase, step = instance.site.phase, instance.step
            near = [aimed_at(self.model, instance), aiming_at(self.model, instance), [(phase, step - 1), (phase, step + 1)]]
            for number, at in chain.from_iterable(near[:reach]):
                self.at(self.world.index(instance.call), number, [self.world.index(at)])

    def facts(self) -> list[Term]:
        """Everything that is known: of the indices, of each operation's moments, and of every pair of operations."""
        for last in range(self._paired, len(self.instances)):
            instance = self.instances[last]
            self._pairs.append(implication(instance.exists, self._all(*self._own(instance))))
            for other in self.instances[:last]:
                key = (*other.key, *instance.key)
                if key not in self.model.between:
                    both_ways = [self._ordered(other, instance), self._ordered(instance, other)]
                    self.model.between[key] = [*both_ways, *self._identified(other, instance)]
                self._pairs += self.model.between[key]
        self._paired = len(self.instances)
        return [*self.world.facts, *(axiom(name, self.world.context) for name in AXIOMS), *self._pairs]

    def _ordered(self, first: Instance, second: Instance) -> Term:
        """What the axioms say if the first one is issued before the second one."""
        implied = [
            implication(self._all(*self._by(edge)), first.moment(edge.earlier) <= second.moment(edge.later))
            for edge in edges(first.operation, second.operation)
            if not edge.last_record or self.model.on_one_stream(first.operation)
        ]
        return implication(self._all(self.before(first, second), first.exists, second.exists), self._all(*implied))

    def _all(self, *formulas: Term) -> Term:
        return conjunction(self.world.context, formulas)

    def _by(self, edge: Edge) -> list[Term]:
        """When an edge holds, and the axioms that it rests on: if an earlier record counts, its stream must be in order."""
        names = (edge.axiom, "A3") if edge.last_record else (edge.axiom,)
        return [*(axiom(name, self.world.context) for name in names if name in AXIOMS), self.world.formula(edge.when)]

    def _own(self, instance: Instance) -> Iterator[Term]:
        for rule in own(instance.operation):
            earlier, later = instance.moment(rule.earlier), instance.moment(rule.later)
            yield implication(axiom(rule.axiom, self.world.context), earlier < later if rule.strict else earlier <= later)

    def _identified(self, first: Instance, second: Instance) -> list[Term]:
        """One operation, seen twice, has its moments once."""
        if (first.site.phase, first.site.position) != (second.site.phase, second.site.position):
            return []
        same_moments = [first.moment(moment) == second.moment(moment) for moment in Moment]
        return [implication(self._all(self.same(first, second), first.exists), self._all(*same_moments))]

    def before(self, first: Instance, second: Instance) -> Term:
        """Whether the host issues the first one before the second one."""
        in_step = z3.BoolVal(first.site.position < second.site.position, self.world.context)
        context = self.world.context
        if first.site.phase != second.site.phase:
            in_phase = z3.BoolVal(first.site.phase < second.site.phase, context)
        else:
            in_phase = disjunction(context, (first.step < second.step, self._all(first.step == second.step, in_step)))
        return disjunction(context, (first.call < second.call, self._all(first.call == second.call, in_phase)))

    def same(self, first: Instance, second: Instance) -> Term:
        """Whether two instances are one operation."""
        at_one_site = first.site.phase == second.site.phase and first.site.position == second.site.position
        if not at_one_site:
            return z3.BoolVal(False, self.world.context)
        return z3.And(first.call == second.call, first.step == second.step)

    def overlap(self, first: Rows, second: Rows) -> Term:
        """Whether two runs have a row in common."""
        return self.world.formula(overlap(first, second))

    def some(self, access: Access, name: str) -> tuple[Rows, Term]:
        """Some rows of an access, and that they are of it: a run as it is, or one row of a kernel's, called `name`."""
        if isinstance(access, Rows):
            return access, z3.BoolVal(True, self.world.context)
        row = self.world.integer(name)
        return access.at(row), self.world.formula((row >= 0) & (row < access.count))

    def meet(self, first: Access, second: Access) -> Term:
        """Whether two accesses have a row in common. For a doubt: it names the row that they may share."""
        mine, of_first = self.some(first, "row of the first")
        other, of_second = self.some(second, "row of the second")
        return z3.And(of_first, of_second, self.overlap(mine, other))

    def holds_at_once(self, first: Instance, second: Instance) -> Term:
        """Whether the times of two operations overlap."""
        return z3.And(first.begin < second.end, second.begin < first.end)


def axiom(name: str, context: z3.Context) -> Term:
    """The sign of an axiom in the facts. It is a fact itself: taken out, the axiom is taken out everywhere."""
    return z3.Bool(f"axiom {name}", context)


def exist(instances: Sequence[Instance]) -> Term:
    """That all of them exist."""
    return z3.And([instance.exists for instance in instances])
