"""Queries put to z3, within a budget of steps."""

import time

import z3

from kvstage_model.symbolic.z3_terms import Term, assert_fast

from .query import Answer, Asked, Query

RLIMIT = 60_000_000
"""Budget of one question, in z3's own count of steps: the same in every process, on every machine. The hardest of the catalogue
takes 13 to 27 million of them, by the order and the names of its facts."""


class Asking:
    """Queries of one obligation, put to z3 one after the other. The facts that two have in common are told once.

    What z3 has learnt from a query it may use in the next: each answer follows from that query's facts alone all the same.
    """

    def __init__(self) -> None:
        self._solver: z3.Solver | None = None
        self._told: set[int] = set()
        self._facts: list[Term] = []  # keeps the terms alive whose ids are told
        self._holding: Term | None = None

    def ask(self, query: Query) -> Asked:
        """Put a query to z3: first whether its premise can hold at all, then the negated goal."""
        begun = time.perf_counter()
        solver, answer = self._telling(query), Answer.UNKNOWN
        can_hold, steps = self._can_hold(solver, query)
        if can_hold is Answer.SAT:
            answer, more, _ = _with(solver, query.premise, query.negated_goal)
            steps += more
        return Asked(query.name, answer, can_hold, query.must_hold, time.perf_counter() - begun, steps)

    def _telling(self, query: Query) -> z3.Solver:
        """A solver that was told the query's facts, and no others."""
        ids = {fact.get_id() for fact in query.facts}
        if self._solver is None or self._solver.ctx is not query.premise.ctx or not self._told <= ids:
            self._solver, self._told, self._facts = z3.SimpleSolver(ctx=query.premise.ctx), set(), []
        new = [fact for fact in query.facts if fact.get_id() not in self._told]
        if new or not self._facts:
            self._holding = None
        assert_fast(self._solver, new)
        self._told, self._facts = ids, query.facts
        return self._solver

    def _can_hold(self, solver: z3.Solver, query: Query) -> tuple[Answer, int]:
        """Whether the premise can hold: with the values that were found last, with small ones, or at all."""
        if self._holding is not None and z3.is_true(self._holding.eval(query.premise, model_completion=True)):
            return Answer.SAT, 0
        answer, steps, self._holding = _with(solver, query.premise, query.hint)
        if answer is not Answer.SAT:
            answer, more, self._holding = _with(solver, query.premise)
            steps += more
        return answer, steps


def ask(query: Query) -> Asked:
    """Put a single query to z3."""
    return Asking().ask(query)


def _with(solver: z3.Solver, *assertions: Term) -> tuple[Answer, int, Term | None]:
    """z3's answer to whether more can hold too, the steps it took, and the values for which it does."""
    solver.push()
    assert_fast(solver, assertions)
    answer, steps = answered(solver)
    values = solver.model() if answer is Answer.SAT else None
    solver.pop()
    return answer, steps, values


def solve(assertions: list[Term], seed: int = 0) -> tuple[Answer, int]:
    """z3's answer to whether all of them can hold, and the steps it took. Anything but sat or unsat is UNKNOWN."""
    solver = z3.Solver(ctx=assertions[-1].ctx)
    assert_fast(solver, assertions)
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
