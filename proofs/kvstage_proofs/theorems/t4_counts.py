"""T4, counts: how many copies, kernels and waits a call issues, exactly."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice

import z3

from kvstage_model.language.edits import Named
from kvstage_model.language.operations import Copy, CopyBatch, Gather, Launch, Operation, Scatter, SyncEvent, SyncStream
from kvstage_model.language.parameters import declared
from kvstage_model.language.scheme import CALLER, LOOP, Scheme
from kvstage_model.ordering.trace import Trace
from kvstage_model.schemes.loop import Loop, Tally
from kvstage_model.search.instances import MOST_ROWS, small_values
from kvstage_model.search.search import Counterexample
from kvstage_model.search.wording import value_in_words
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "A call issues each of its copies, kernels and blocking waits in exactly the steps stated, once a step, or once before or "
    "behind its loop, and no others: so many copies and so many waits, for every length, history, block size and table."
)
COUNTED = Copy | CopyBatch | Gather | Scatter | Launch | SyncStream | SyncEvent
"""What counts: what moves rows on a stream, and what makes the host wait."""


def queries(loop: Loop) -> Iterator[Query]:
    """That an operation exists in a step exactly if it is stated to, and that none exists of which nothing is stated."""
    model = SchemeModel(loop.scheme)
    call, step = model.world.integer("call"), model.world.integer("i")
    for number, phase in enumerate(model.names):
        issued = model.instances("i", call, number, step)
        if phase == LOOP:
            yield from _in_steps(model, loop.tally, call, step, issued)
            yield from _unstated(model, phase, loop.tally, issued)
        elif phase != CALLER:
            yield from _unstated(model, phase, loop.once, issued)
    outside = [number for number, phase in enumerate(model.names) if phase not in (LOOP, CALLER)]
    issued = [i for number in outside for i in model.instances("once", call, number, 0)]
    for named in loop.once:
        facts, sites = model.world.facts, [i.exists for i in issued if named(i.operation)]
        always = z3.BoolVal(True, model.world.context)
        missing = z3.Not(z3.Or(sites)) if sites else always
        yield Query(f"{named} is issued outside the loop", facts, always, missing, model.world.hint, must_hold=True)
        for a, b in combinations(sites, 2):
            yield Query(f"{named} is issued once outside the loop", facts, a, b, model.world.hint)


def _in_steps(model: SchemeModel, tally: Tally, call: int, step: int, issued: list[Instance]) -> Iterator[Query]:
    world = model.world
    for named, steps in tally.items():
        first, past = (world.term(end) for end in model.arguments_of(call, steps))
        sites = [i for i in issued if named(i.operation)]
        stated = z3.And(first <= world.term(step), world.term(step) < past)
        exists = z3.Or([z3.BoolVal(False, world.context), *(i.exists for i in sites)])
        facts, always = world.facts, z3.BoolVal(True, world.context)
        yield Query(f"{named} is issued in the stated steps only", facts, exists, z3.Not(stated), world.hint, must_hold=True)
        yield Query(f"{named} is issued in each of them", facts, stated, z3.Not(exists), world.hint, must_hold=True)
        yield Query(f"{named}: the last step is not before the first", facts, always, past < first, world.hint, must_hold=True)
        for a, b in combinations(sites, 2):
            yield Query(f"{named} is issued once a step", facts, a.exists, b.exists, world.hint)


def _unstated(model: SchemeModel, phase: str, stated: Iterable[Named], issued: list[Instance]) -> Iterator[Query]:
    """What is issued though nothing is stated of it: whatever may exist is one too many."""
    names = tuple(stated)
    for i in issued:
        if isinstance(i.operation, COUNTED) and not any(named(i.operation) for named in names):
            words = f"{Named.of(i.operation)} of the {phase}, of which nothing is stated, is never issued"
            yield Query(words, model.world.facts, i.exists, i.exists, model.world.hint)


def search(loop: Loop, most: int | None) -> Counterexample | None:
    """The first small instance whose counts are others."""
    for values in islice(small_values(declared(loop.scheme), MOST_ROWS), most):
        scheme: Scheme = loop.scheme(**values)
        issued = [operation for i in range(scheme.steps) for operation in scheme.step(i)]
        expected = {named: past - first for named, steps in loop.tally.items() for first, past in [steps(**values)]}
        wrong = _wrong(issued, expected) or _wrong([*scheme.prologue, *scheme.epilogue], dict.fromkeys(loop.once, 1))
        if wrong is not None:
            words = ", ".join(f"{name} = {value_in_words(value)}" for name, value in values.items())
            return Counterexample(words, scheme.steps, Trace((), ()), wrong)
    return None


def _wrong(issued: Sequence[Operation], expected: Mapping[Named, int]) -> str | None:
    """The first name that is issued another number of times, or that counts and is not among them."""
    for named, times in expected.items():
        if (found := sum(map(named, issued))) != times:
            return f"{named} is issued {found} times, not {times}"
    unstated = (o for o in issued if isinstance(o, COUNTED) and not any(named(o) for named in expected))
    return next((f"{Named.of(operation)} is issued, and nothing is stated of it" for operation in unstated), None)


T4 = Theorem[Loop]("T4", "counts", CLAIM, queries, search)
