"""T1, no hazard: two accesses to a common row, at least one a write, never overlap in time."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import z3

from kvstage_model.model import Instance, SchemeModel
from kvstage_model.parameters import SchemeFunction
from kvstage_model.races import conflicts
from kvstage_model.search import hazard, search
from kvstage_model.window import Window

from .obligation import Theorem
from .query import Query

CLAIM = (
    "Whatever the driver does within the axioms, two accesses to a common row, at least one of them a write, never overlap: "
    "for every length, history, block size and table, any number of calls, and a caller who uses the copy and overwrites "
    "the original as soon as a call has returned."
)


def queries(function: SchemeFunction) -> Iterator[Query]:
    """One query for each pair of conflicting operations of two arbitrary steps, of one call and of two."""
    model = SchemeModel(function)
    phases = range(len(model.phases))
    for first, second in combinations_with_replacement(phases, 2):
        yield from _pairs(model, first, second, calls=1)
    for first, second in product(phases, repeat=2):
        yield from _pairs(model, first, second, calls=2)


def _pairs(model: SchemeModel, first: int, second: int, calls: int) -> Iterator[Query]:
    world = model.world
    call, later = world.integer("call"), world.integer("later call" if calls == 2 else "call")
    window = Window(model)
    mine = window.add("i", call, first, world.integer("i"))
    other = window.add("j", later, second, world.integer("j"))
    window.add_single_phases(call, later)
    in_order = z3.BoolVal(True, world.context) if calls == 1 else world.term(call) < world.term(later)
    asked = [(a, b, clash) for a, b in product(mine, other) if (clash := _clash(window, a, b)) is not None]
    facts = window.facts() if asked else []
    for a, b, clash in asked:
        premise = z3.And(in_order, window.before(a, b), a.exists, b.exists)
        name = f"{_word(model, a, 'i')} and {_word(model, b, 'j')}{' of a later call' if calls == 2 else ''}"
        yield Query(name, facts, premise, z3.And(clash, window.holds_at_once(a, b)))


def _clash(window: Window, first: Instance, second: Instance) -> z3.BoolRef | None:
    """That two operations touch a common row, at least one of them writing; None where their buffers rule it out."""
    pairs = [pair for pair in conflicts(first.operation, second.operation) if pair[0].buffer.name == pair[1].buffer.name]
    return z3.Or([window.overlap(mine, other) for mine, other in pairs]) if pairs else None


def _word(model: SchemeModel, instance: Instance, step: str) -> str:
    return f"{type(instance.operation).__name__} of {model.phases[instance.site.phase].name}[{step}]"


T1 = Theorem[SchemeFunction]("T1", "no hazard", CLAIM, queries, lambda function: search(function, hazard))
