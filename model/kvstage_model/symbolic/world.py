"""A world: what is known about the symbolic indices of one obligation, and their arithmetic.

When Python asks for the truth of a condition, the world decides, by the path that is running (see `paths`).
"""

from collections.abc import Callable
from typing import TypeVar

import z3

from .division import Divisor
from .errors import UnsupportedError
from .index import Index, as_int, formula, term_of
from .paths import Path, Paths
from .z3_terms import Term, assert_fast

R = TypeVar("R")

BUDGET = 2_000_000
"""Steps of the solver for the question whether a path is feasible. One that it can't rule out within them is looked at."""


class World:
    """The facts of one obligation, in a solver context of its own."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self._facts: dict[int, Term] = {}
        self._divisors: list[Divisor] = []
        self._running = Paths(self)
        self._solver = z3.Solver(ctx=self.context)
        self._solver.set("rlimit", BUDGET)
        self._asserted = 0
        self._positives: list[Term] = []
        self._hints: list[Term] = []
        self._refusal: UnsupportedError | None = None

    # -- refusals

    def refuse(self, reason: str) -> UnsupportedError:
        """The error to raise. It is remembered: a scheme that catches it is refused all the same."""
        self._refusal = self._refusal or UnsupportedError(reason)
        return self._refusal

    def demand_no_refusal(self) -> None:
        """Raises the first refusal again, if there was one."""
        if self._refusal is not None:
            raise self._refusal

    # -- indices and facts

    @property
    def facts(self) -> list[Term]:
        """All facts, in the order in which they were found."""
        return list(self._facts.values())

    def integer(self, name: str) -> int:
        """A fresh symbolic index under that name; the same name is the same index."""
        return as_int(Index(self, z3.Int(name, self.context)))

    def index(self, term: Term) -> int:
        """A z3 term as an index."""
        return as_int(Index(self, term))

    def function(self, name: str, arity: int) -> Callable[..., int]:
        """An unknown function of integers."""
        symbol = z3.Function(name, *[z3.IntSort(self.context)] * (arity + 1))

        def apply(*arguments: int) -> int:
            return self.index(symbol(*[z3.simplify(self.term(argument)) for argument in arguments]))

        return apply

    def term(self, value: object) -> Term:
        """The z3 term of an index or an int."""
        return term_of(self, value)

    def formula(self, condition: bool) -> Term:
        """The z3 formula of a condition or a bool."""
        return formula(self, condition)

    def assume(self, *conditions: bool) -> None:
        """Add facts. Each must be true of every case that the obligation is about."""
        self._add(*(formula(self, condition) for condition in conditions))

    @property
    def hint(self) -> Term:
        """Small values of the numbers that were given a least one: where something can hold, it often can with these."""
        return z3.And([z3.BoolVal(True, self.context), *self._hints])

    def at_least(self, number: int, least: int) -> None:
        """Add the fact that a number is no less than its least value."""
        self.assume(number >= least)
        self._hints.append(self.term(number) == least)

    def assume_implied(self, premise: bool, conclusion: bool) -> None:
        """Add the fact that a conclusion holds if a premise does."""
        self._add(z3.Implies(formula(self, premise), formula(self, conclusion)))

    def _add(self, *facts: Term) -> None:
        for fact in facts:
            self._facts.setdefault(fact.get_id(), fact)

    # -- arithmetic that is not linear

    def product(self, a: Term, b: Term) -> Term:
        """`a * b`: one of them a number, or provably at least 1."""
        a, b = z3.simplify(a), z3.simplify(b)
        if z3.is_int_value(a) or z3.is_int_value(b):
            return a * b
        for factor, divisor in ((a, b), (b, a)):
            if self._positive(divisor):
                result, facts = self._divisor(divisor).times(factor)
                self._add(*facts)
                return result
        raise self.refuse(f"the product ({a}) * ({b}): one factor must be a number, or provably at least 1; declare its range")

    def quotient(self, a: Term, b: Term) -> Term:
        """`a // b` for b provably at least 1."""
        return self._divide(a, b)[0]

    def remainder(self, a: Term, b: Term) -> Term:
        """`a % b` for b provably at least 1."""
        return self._divide(a, b)[1]

    def _divide(self, a: Term, b: Term) -> tuple[Term, Term]:
        a, b = z3.simplify(a), z3.simplify(b)
        if z3.is_int_value(b) and b.as_long() >= 1:
            return a / b, a % b  # by a number they are linear, and for a positive one z3's meaning is Python's
        if not self._positive(b):
            raise self.refuse(f"the divisor {b} is not provably at least 1: declare its range")
        quotient, remainder, facts = self._divisor(b).divide(a)
        self._add(*facts)
        return quotient, remainder

    def _positive(self, term: Term) -> bool:
        if any(term.eq(known) for known in self._positives):
            return True
        if z3.is_int_value(term) or not self.impossible(*self._running.conditions, term < 1):
            return False
        if self.impossible(term < 1):
            self._positives.append(term)
        return True

    def _divisor(self, d: Term) -> Divisor:
        for known in self._divisors:
            if known.d.eq(d):
                return known
        self._divisors.append(Divisor(len(self._divisors), d))
        return self._divisors[-1]

    # -- paths

    def impossible(self, *conditions: Term) -> bool:
        """Whether the facts rule the conditions out. Only a proof counts."""
        assert_fast(self._solver, self.facts[self._asserted :])
        self._asserted = len(self._facts)
        self._solver.push()
        assert_fast(self._solver, conditions)
        answer = self._solver.check()
        self._solver.pop()
        return bool(answer == z3.unsat)

    def decide(self, condition: Term) -> bool:
        """Which way the running path goes at this condition."""
        return self._running.decide(condition)

    def follow(self, path: Path, run: Callable[[], R]) -> tuple[Term, R]:
        """The condition of a path, and the result of running along it."""
        return self._running.follow(path, run)

    def paths(self, run: Callable[[], object]) -> list[Path]:
        """Every feasible path of a run: depth first, true before false."""
        return self._running.explore(run)
