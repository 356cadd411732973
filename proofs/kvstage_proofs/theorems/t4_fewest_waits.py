"""T4, the fewest waits: why a host that takes every row through one buffer can't do with fewer."""

from collections.abc import Iterator
from typing import Any

import z3

from ..obligation import Theorem
from ..solvers.query import Query

LOWER_CLAIM = (
    "One host thread that takes n rows through one buffer of K rows blocks at least ceil(n / K) times. Scope: every row is "
    "taken by the host from the buffer, a buffer row holds one row until it is taken, and only a blocking call tells the "
    "host that a copy has ended."
)


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


T4_LOWER = Theorem[Any]("T4", "fewest waits", LOWER_CLAIM, lower_bound, lambda _subject, _most: None)
