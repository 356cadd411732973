"""Products, quotients and remainders by a symbolic number, kept linear.

`k * d`, `k // d` and `k % d` for a symbolic d become uninterpreted functions of k, with instances of one lemma:

    gap lemma   a < b and d >= 1  =>  a * d + d <= b * d

`lemmas()` states what is instantiated as closed formulas over true multiplication; the proofs discharge them once with
nonlinear arithmetic. Every other query stays in linear arithmetic, where a solver always answers.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import TypeVar

import z3

from .z3_terms import Term, implication

F = TypeVar("F")


def times_one(d: Term, k: Term, kd: Term) -> Iterator[Term]:
    """What is assumed of kd = k * d alone."""
    yield implication(k == 0, kd == 0)
    yield implication(k >= 1, kd >= d)
    yield implication(k <= -1, kd <= -d)


def times_two(d: Term, a: Term, ad: Term, b: Term, bd: Term) -> Iterator[Term]:
    """What is assumed of ad = a * d and bd = b * d: the gap lemma, exact for neighbours."""
    yield implication(a < b, ad + d <= bd)
    yield implication(a + 1 == b, ad + d == bd)
    yield implication(a == b, ad == bd)


def euclid(d: Term, k: Term, q: Term, qd: Term, r: Term) -> Iterator[Term]:
    """What is assumed of q = k // d and r = k % d, with qd = q * d: Euclid's definition."""
    yield z3.And(r >= 0, r < d, k == qd + r)


def remainder_two(d: Term, a: Term, ar: Term, b: Term, br: Term) -> Iterator[Term]:
    """What is assumed of two remainders: equal ones lie at least d apart, and d apart they are equal."""
    yield z3.Implies(z3.And(a < b, ar == br), a + d <= b)
    yield implication(a + d == b, ar == br)


def lemmas(context: z3.Context) -> Iterator[tuple[str, Term]]:
    """Each assumption above as a closed claim about true integers; every one must be valid for d >= 1."""
    d, a, b, m, n, r, s = z3.Ints("d a b m n r s", context)
    positive = d >= 1
    one = z3.And(*times_one(d, a, a * d))
    two = z3.And(*times_two(d, a, a * d, b, b * d))
    yield "a product by d is 0 at 0, at least d from 1 on, at most -d from -1 down", z3.Implies(positive, one)
    yield "the gap lemma: products by d of different numbers lie at least d apart", z3.Implies(positive, two)
    # a = m * d + r and b = n * d + s, with the gap lemma's own instances for m and n: linear but for the two products
    md, nd = z3.Ints("md nd", context)
    given = z3.And(
        positive, *euclid(d, a, m, md, r), *euclid(d, b, n, nd, s), *times_two(d, m, md, n, nd), *times_two(d, n, nd, m, md)
    )
    apart, shifted = remainder_two(d, a, r, b, s)
    yield "equal remainders lie at least d apart", z3.Implies(given, apart)
    next_product = z3.And(*times_two(d, m + 1, md + d, n, nd), *times_two(d, n, nd, m + 1, md + d))
    yield "numbers d apart have equal remainders", z3.Implies(z3.And(given, next_product), shifted)


class Divisor:
    """One symbolic d: its functions, and the numbers that they were applied to so far."""

    def __init__(self, number: int, d: Term) -> None:
        ints = [z3.IntSort(d.ctx)] * 2
        self.d = d
        self._times, self._quotient, self._remainder = (z3.Function(f"{name}!{number}", *ints) for name in ("times", "div", "mod"))
        self._factors: list[Term] = []
        self._dividends: list[Term] = []

    def times(self, k: Term) -> tuple[Term, list[Term]]:
        """`k * d`, and the facts that it adds."""
        return self._times(k), self._facts_of_factor(k)

    def _facts_of_factor(self, k: Term) -> list[Term]:
        if _known(k, self._factors):
            return []
        self._factors.append(k)
        facts = list(times_one(self.d, k, self._times(k)))
        for a, b in _pairs_with_last(self._factors):
            facts += times_two(self.d, a, self._times(a), b, self._times(b))
        return self._guarded(facts)

    def divide(self, k: Term) -> tuple[Term, Term, list[Term]]:
        """`k // d`, `k % d`, and the facts that they add."""
        q, r = self._quotient(k), self._remainder(k)
        if _known(k, self._dividends):
            return q, r, []
        self._dividends.append(k)
        qd, facts = self.times(q)
        new = list(euclid(self.d, k, q, qd, r))
        for a, b in _pairs_with_last(self._dividends):
            new += remainder_two(self.d, a, self._remainder(a), b, self._remainder(b))
        return q, r, facts + self._guarded(new)

    def _guarded(self, facts: list[Term]) -> list[Term]:
        """The facts hold for d >= 1, which a path may have shown that other paths have not."""
        positive = self.d >= 1
        return [implication(positive, fact) for fact in facts]


def _known(k: Term, terms: list[Term]) -> bool:
    return any(k.eq(term) for term in terms)


def _pairs_with_last(terms: list[F]) -> Iterator[tuple[F, F]]:
    """Both orders of the last term with every earlier one."""
    for earlier in terms[:-1]:
        yield from permutations((earlier, terms[-1]))
