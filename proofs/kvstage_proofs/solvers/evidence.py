"""What is enough for an answer: facts that contradict each other, or values for which all of them hold.

A question of some thousands of facts is refuted by some dozens of them, and is satisfied by one value for each symbol. Both
can be put to another solver as questions of their own, and an answer to them is an answer to the whole: what contradicts
itself does so among more facts, and what holds with certain values can hold.
"""

import re
from collections.abc import Sequence

import z3

from kvstage_model.symbolic.z3_terms import Term, assert_fast, track

from .z3_solver import RLIMIT

TRACKED = 4 * RLIMIT
"""Budget of one question whose facts are tracked, which takes z3 more steps than the same question by itself."""

DECLARED = re.compile(r"^\(declare-fun (\|[^|]*\||[^ ]+) .*\n", re.MULTILINE)


def core(assertions: Sequence[Term]) -> list[Term] | None:
    """Some of the assertions that can't hold together, as z3 finds them; None if it does not say so."""
    solver = _solver(assertions)
    signs = track(solver, assertions)
    if solver.check() != z3.unsat:
        return None
    return [signs[str(sign)] for sign in solver.unsat_core()]


def witness(assertions: Sequence[Term]) -> str | None:
    """The assertions as SMT-LIB text, each symbol and function in them defined as z3 finds it; None if it finds nothing."""
    solver = _solver(assertions)
    assert_fast(solver, assertions)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    defined = {declared.name() for declared in model.decls()}

    def left_open(declaration: re.Match[str]) -> str:
        return "" if declaration[1].strip("|") in defined else declaration[0]

    text: str = DECLARED.sub(left_open, solver.to_smt2())
    at = text.index("(assert")
    return f"{text[:at]}{model.sexpr()}\n{text[at:]}"


def _solver(assertions: Sequence[Term]) -> z3.Solver:
    solver = z3.Solver(ctx=assertions[-1].ctx)
    solver.set("rlimit", TRACKED)
    return solver
