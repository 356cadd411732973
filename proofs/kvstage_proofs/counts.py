"""T4, counts: how many copies and waits a call issues, exactly; and why one buffer can't do with fewer waits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from kvstage_model.model import SchemeModel
from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.scheme import LOOP, Scheme
from kvstage_model.search import MOST_ROWS, Counterexample, value_in_words
from kvstage_model.tallies import Tally
from kvstage_model.trace import Trace

from .obligation import Theorem
from .query import Query

CLAIM = (
    "A call issues each of its operations in exactly the steps stated, once a step: so many copies and so many waits, for "
    "every length, history, block size and table."
)
LOWER_CLAIM = (
    "One host thread that takes n rows through one buffer of K rows blocks at least ceil(n / K) times. Scope: every row is "
    "taken by the host from the buffer, a buffer row holds one row until it is taken, and only a blocking call tells the "
    "host that a copy has ended."
)


@dataclass(frozen=True)
class Counted:
    """A scheme, and for each of its operations the steps in which it is issued."""

    function: SchemeFunction
    steps: Tally


def queries(counted: Counted) -> Iterator[Query]:
    """That an operation exists in a step exactly where it is stated to, one query for each."""
    model = SchemeModel(counted.function)
    world, call, step = model.world, model.world.integer("call"), model.world.integer("i")
    number = model.names.index(LOOP)
    for named, steps in counted.steps.items():
        first, past = (world.term(end) for end in model.arguments_of(call, steps))
        sites = [i for i in model.instances("i", call, number, step) if named(i.operation)]
        stated = z3.And(first <= world.term(step), world.term(step) < past)
        exists = z3.Or([i.exists for i in sites])
        facts, always = world.facts, z3.BoolVal(True, world.context)
        yield Query(f"{named} is issued in the stated steps only", facts, exists, z3.Not(stated), world.hint, must_hold=True)
        yield Query(f"{named} is issued in each of them", facts, stated, z3.Not(exists), world.hint, must_hold=True)
        yield Query(f"{named}: the last step is not before the first", facts, always, past < first, world.hint, must_hold=True)
        for a, b in ((a, b) for k, a in enumerate(sites) for b in sites[k + 1 :]):
            yield Query(f"{named} is issued once a step", facts, a.exists, b.exists, world.hint)


def search(counted: Counted, most: int | None) -> Counterexample | None:
    """The first small instance whose counts are others."""
    for number, values in enumerate(small_values(declared(counted.function), MOST_ROWS)):
        if number == most:
            break
        scheme: Scheme = counted.function(**values)
        issued = [operation for i in range(scheme.steps) for operation in scheme.step(i)]
        for named, steps in counted.steps.items():
            (first, past), found = steps(**values), sum(map(named, issued))
            if found != past - first:
                words = ", ".join(f"{name} = {value_in_words(value)}" for name, value in values.items())
                return Counterexample(words, scheme.steps, Trace((), ()), f"{named} is issued {found} times, not {past - first}")
    return None


def lower_bound(_: Any) -> Iterator[Query]:
    """The invariant of a host with one buffer of K rows: taken + fresh <= K waits, fresh + pending <= K.

    `pending` rows were sent and may be under way, `fresh` ones have certainly arrived and were not taken. A send needs a
    free row of the buffer, a wait makes all pending rows fresh, a take needs a fresh row. `kw` is K times the waits.
    """
    context = z3.Context()
    k, taken, fresh, pending, kw = z3.Ints("K taken fresh pending kw", context)
    n, waits = z3.Ints("n waits", context)

    def holds(taken: Any, fresh: Any, pending: Any, kw: Any) -> Any:
        within = z3.And(taken >= 0, fresh >= 0, pending >= 0, fresh + pending <= k)
        return z3.And(k >= 1, within, taken + fresh <= kw)

    before, true = holds(taken, fresh, pending, kw), z3.BoolVal(True, context)
    moves = {
        "a send": (fresh + pending < k, (taken, fresh, pending + 1, kw)),
        "a wait": (pending > 0, (taken, fresh + pending, 0, kw + k)),
        "a take": (fresh > 0, (taken + 1, fresh - 1, pending, kw)),
    }
    yield Query("at the start the invariant holds", [], k >= 1, z3.Not(holds(0, 0, 0, 0)), true, must_hold=True)
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
