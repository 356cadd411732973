"""A query: facts, a premise under which they are looked at, and a goal, whose negation must be impossible."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import z3

from kvstage_model.symbolic.z3_terms import Term, assert_fast

LINEAR, NONLINEAR = "QF_UFLIA", "QF_NIA"
"""The logics of the queries, by SMT-LIB's names: the lemmas alone are not linear."""


class Answer(Enum):
    """What a solver said."""

    UNSAT = "unsat"
    SAT = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Query:
    """Under the facts, and if the premise holds, the negated goal must be impossible.

    A premise that can never hold makes nothing true: if it `must_hold` sometimes, the obligation is VACUOUS then.
    """

    name: str
    facts: list[Term]
    premise: Term
    negated_goal: Term
    hint: Term
    """Small values under which the premise may be easy to satisfy. What can hold with a hint can hold without it."""
    must_hold: bool = False
    strengthened: Callable[[], "Query"] | None = None
    """The same question with more facts, for when these do not suffice."""
    logic: str = LINEAR

    @property
    def premises(self) -> list[Term]:
        """What must be able to hold."""
        return [*self.facts, self.premise]

    @property
    def negation(self) -> list[Term]:
        """What must be impossible."""
        return [*self.premises, self.negated_goal]

    def smt2(self) -> str:
        """The question as SMT-LIB text: unsat proves."""
        return self.text(self.negation)

    def premise_smt2(self) -> str:
        """Whether the premise can hold, as SMT-LIB text."""
        return self.text(self.premises)

    def text(self, assertions: list[Term]) -> str:
        """Whether some assertions of this query can hold together, as SMT-LIB text."""
        solver = z3.Solver(ctx=self.negated_goal.ctx)
        assert_fast(solver, assertions)
        return self.with_logic(solver.to_smt2())

    def with_logic(self, text: str) -> str:
        """SMT-LIB text that says which logic it is in."""
        return f"(set-logic {self.logic})\n{text}"


@dataclass(frozen=True)
class Asked:
    """What came of a query: the `answer` to its negated goal, and whether its premise `can_hold` at all."""

    name: str
    answer: Answer
    can_hold: Answer
    must_hold: bool
    seconds: float
    rlimit: int

    def after(self, other: "Asked") -> "Asked":
        """This one, put after the same question with fewer facts: the costs add up."""
        return replace(self, seconds=self.seconds + other.seconds, rlimit=self.rlimit + other.rlimit)

    @property
    def open(self) -> bool:
        """Whether the negated goal could hold and was not refuted."""
        return self.can_hold is Answer.SAT and self.answer is not Answer.UNSAT

    @property
    def proves(self) -> bool:
        """Whether the negated goal was refuted; without a premise that can hold, it proves nothing."""
        return self.answer is Answer.UNSAT and self.can_hold is Answer.SAT
