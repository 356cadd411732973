"""Queries put to z3, within a budget of steps."""

import time

import z3

from kvstage_model.symbolic.z3_terms import Term, assert_fast

from .query import Answer, Asked, Query

RLIMIT = 60_000_000
"""Budget of one question, in z3's own count of steps: the same in every process, on every machine. The hardest of the catalogue
takes 13 to 27 million of them, by the order and the names of its facts."""


def ask(query: Query) -> Asked:
    """Put a query to z3: first whether its premise can hold at all, then the negated goal."""
    begun = time.perf_counter()
    answer = Answer.UNKNOWN
    can_hold, steps = solve([*query.premises, query.hint])
    if can_hold is not Answer.SAT:
        can_hold, more = solve(query.premises)
        steps += more
    if can_hold is Answer.SAT:
        answer, more = solve(query.negation)
        steps += more
    return Asked(query.name, answer, can_hold, query.must_hold, time.perf_counter() - begun, steps)


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
