"""T4, counts: how many copies and waits a call issues, exactly; and why one buffer can't do with fewer waits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import z3

from kvstage_model.model import Instance, SchemeModel
from kvstage_model.operations import Copy, CopyBatch, Gather, Launch, Operation, Scatter, SyncEvent, SyncStream
from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.scheme import CALLER, LOOP, Scheme
from kvstage_model.search import MOST_ROWS, Counterexample, value_in_words
from kvstage_model.tallies import Tally
from kvstage_model.trace import Trace
from kvstage_model.variants import Named

from .obligation import Theorem
from .query import Query

CLAIM = (
    "A call issues each of its copies, kernels and blocking waits in exactly the steps stated, once a step, or once before or "
    "behind its loop, and no others: so many copies and so many waits, for every length, history, block size and table."
)
LOWER_CLAIM = (
    "One host thread that takes n rows through one buffer of K rows blocks at least ceil(n / K) times. Scope: every row is "
    "taken by the host from the buffer, a buffer row holds one row until it is taken, and only a blocking call tells the "
    "host that a copy has ended."
)


COUNTED = Copy | CopyBatch | Gather | Scatter | Launch | SyncStream | SyncEvent
"""What counts: what moves rows on a stream, and what makes the host wait."""


@dataclass(frozen=True)
class Counted:
    """A scheme; for each operation of its loop the steps in which it is issued; and what is issued once outside the loop."""

    function: SchemeFunction
    steps: Tally
    once: tuple[Named, ...] = ()


def queries(counted: Counted) -> Iterator[Query]:
    """That an operation exists in a step exactly where it is stated to, and that none exists of which nothing is stated."""
    model = SchemeModel(counted.function)
    call, step = model.world.integer("call"), model.world.integer("i")
    for number, phase in enumerate(model.names):
        issued = model.instances("i", call, number, step)
        if phase == LOOP:
            yield from _in_steps(model, counted.steps, call, step, issued)
            yield from _unstated(model, phase, counted.steps, issued)
        elif phase != CALLER:
            yield from _unstated(model, phase, counted.once, issued)
    outside = [number for number, phase in enumerate(model.names) if phase not in (LOOP, CALLER)]
    issued = [i for number in outside for i in model.instances("once", call, number, 0)]
    for named in counted.once:
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


def search(counted: Counted, most: int | None) -> Counterexample | None:
    """The first small instance whose counts are others."""
    for values in islice(small_values(declared(counted.function), MOST_ROWS), most):
        scheme: Scheme = counted.function(**values)
        issued = [operation for i in range(scheme.steps) for operation in scheme.step(i)]
        expected = {named: past - first for named, steps in counted.steps.items() for first, past in [steps(**values)]}
        wrong = _wrong(issued, expected) or _wrong([*scheme.prologue, *scheme.epilogue], dict.fromkeys(counted.once, 1))
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


def invariant(k: Any, taken: Any, fresh: Any, pending: Any, kw: Any) -> tuple[Any, ...]:
    """What holds before and after every move of that host: `lower_bound` says what the letters are."""
    return taken >= 0, fresh >= 0, pending >= 0, fresh + pending <= k, taken + fresh <= kw


def lower_bound(_: Any) -> Iterator[Query]:
    """The invariant of a host with one buffer of K rows: taken + fresh <= K waits, fresh + pending <= K.

    `pending` rows were sent and may be under way, `fresh` ones have certainly arrived and were not taken. A send needs a
    free row of the buffer, a wait makes all pending rows fresh, a take needs a fresh row. `kw` is K times the waits.
    """
    context = z3.Context()
    k, taken, fresh, pending, kw = z3.Ints("K taken fresh pending kw", context)
    n, waits = z3.Ints("n waits", context)
    zero = z3.IntVal(0, context)

    def holds(*state: Any) -> Any:
        return z3.And(k >= 1, z3.And(*invariant(k, *state)))

    before, true = holds(taken, fresh, pending, kw), z3.BoolVal(True, context)
    moves = {
        "a send": (fresh + pending < k, (taken, fresh, pending + 1, kw)),
        "a wait": (pending > 0, (taken, fresh + pending, 0, kw + k)),
        "a take": (fresh > 0, (taken + 1, fresh - 1, pending, kw)),
    }
    yield Query("at the start the invariant holds", [], k >= 1, z3.Not(holds(zero, zero, zero, zero)), true, must_hold=True)
    for name, (enabled, after) in moves.items():
        yield Query(f"{name} keeps it", [], z3.And(before, enabled), z3.Not(holds(*after)), true, must_hold=True)
    enough = z3.And(before, taken == n)
    yield Query("n rows taken need n <= K * waits", [], enough, z3.Not(n <= kw), true, must_hold=True)
    # kw is K * waits, and q = ceil(n / K): q * K is the least multiple of K that is no less than n
    q, qk = z3.Ints("q qK", context)
    gap = z3.And(z3.Implies(waits < q, kw + k <= qk), qk < n + k)
    yield Query("so the waits are no fewer than ceil(n / K)", [gap], z3.And(enough, q >= 0), waits < q, true, must_hold=True)


T4 = Theorem[Counted]("T4", "counts", CLAIM, queries, search)
T4_LOWER = Theorem[Any]("T4", "fewest waits", LOWER_CLAIM, lower_bound, lambda _subject, _most: None)
