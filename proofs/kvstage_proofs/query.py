"""A query: facts, a premise under which they are looked at, and a doubt that must be impossible."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import z3

from kvstage_model.terms import Term, tell

LINEAR, NONLINEAR = "QF_UFLIA", "QF_NIA"
"""The logics of the queries, by SMT-LIB's names: the lemmas alone are not linear."""

RLIMIT = 60_000_000
"""Budget of one question, in z3's own count of steps: the same in every process, on every machine. The hardest of the catalogue
takes 13 to 27 million of them, by the order and the names of its facts."""


class Answer(Enum):
    """What a solver said."""

    UNSAT = "unsat"
    SAT = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Query:
    """Under the facts, and where the premise holds, the doubt must be impossible.

    A premise that can never hold makes nothing true: where it `must_hold` sometimes, the obligation is VACUOUS then.
    """

    name: str
    facts: list[Term]
    premise: Term
    doubt: Term
    hint: Term
    """Small values under which the premise may be easy to satisfy. What can hold with a hint can hold without it."""
    must_hold: bool = False
    wider: Callable[[], "Query"] | None = None
    """The same question with more facts, for where these do not suffice."""
    logic: str = LINEAR

    @property
    def premises(self) -> list[Term]:
        """What must be able to hold."""
        return [*self.facts, self.premise]

    @property
    def doubts(self) -> list[Term]:
        """What must be impossible."""
        return [*self.premises, self.doubt]

    def smt2(self) -> str:
        """The question as SMT-LIB text: unsat proves."""
        return self.text(self.doubts)

    def premise_smt2(self) -> str:
        """Whether the premise can hold, as SMT-LIB text."""
        return self.text(self.premises)

    def text(self, assertions: list[Term]) -> str:
        """Whether some assertions of this query can hold together, as SMT-LIB text."""
        solver = z3.Solver(ctx=self.doubt.ctx)
        tell(solver, assertions)
        return self.with_logic(solver.to_smt2())

    def with_logic(self, text: str) -> str:
        """SMT-LIB text that says which logic it is in."""
        return f"(set-logic {self.logic})\n{text}"


@dataclass(frozen=True)
class Asked:
    """What came of a query: the `answer` to its doubt, and whether its premise `can_hold` at all."""

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
        """Whether the doubt could arise and was not refuted."""
        return self.can_hold is Answer.SAT and self.answer is not Answer.UNSAT

    @property
    def proves(self) -> bool:
        """Whether the doubt was refuted; without a premise that can hold, it proves nothing."""
        return self.answer is Answer.UNSAT and self.can_hold is Answer.SAT


def ask(query: Query) -> Asked:
    """Put a query to z3: first whether its premise can hold at all, then the doubt."""
    begun = time.perf_counter()
    answer = Answer.UNKNOWN
    can_hold, steps = check([*query.premises, query.hint])
    if can_hold is not Answer.SAT:
        can_hold, more = check(query.premises)
        steps += more
    if can_hold is Answer.SAT:
        answer, more = check(query.doubts)
        steps += more
    return Asked(query.name, answer, can_hold, query.must_hold, time.perf_counter() - begun, steps)


def check(assertions: list[Term], seed: int = 0) -> tuple[Answer, int]:
    """z3's answer to whether all of them can hold, and the steps it took. Anything but sat or unsat is UNKNOWN."""
    solver = z3.Solver(ctx=assertions[-1].ctx)
    tell(solver, assertions)
    return answered(solver, seed)


def answered(solver: z3.Solver, seed: int = 0) -> tuple[Answer, int]:
    """z3's answer to whether all that a solver was told can hold, within the budget of one question, and the steps it took."""
    before = _steps(solver)
    solver.set("rlimit", RLIMIT)
    if seed:
        solver.set("random_seed", seed)
    try:
        found = solver.check()
    except z3.Z3Exception:
        return Answer.UNKNOWN, RLIMIT
    answer = Answer.UNSAT if found == z3.unsat else Answer.SAT if found == z3.sat else Answer.UNKNOWN
    return answer, _steps(solver) - before


def _steps(solver: z3.Solver) -> int:
    """The steps that z3 counted so far; the count runs through all solvers of a context."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118
