"""z3's connectives for terms that are known to fit: booleans of one context.

z3's own `And`, `Or`, `Implies` and `Solver.add` ask each argument for its sort and context again. For a window, which is
some thousands of small formulas, that takes longer than solving it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any
"""A z3 term (z3 ships no types)."""


def assert_fast(solver: Any, formulas: Iterable[Term]) -> None:
    """Adds formulas to a solver."""
    for formula in formulas:
        z3.Z3_solver_assert(solver.ctx.ref(), solver.solver, formula.as_ast())


def track(solver: Any, formulas: Iterable[Term]) -> dict[str, Term]:
    """Adds formulas to a solver, each under a sign that its unsat core may name: the formulas by their signs."""
    signs = {}
    for number, formula in enumerate(formulas):
        sign = z3.Bool(f"formula {number}", solver.ctx)
        z3.Z3_solver_assert_and_track(solver.ctx.ref(), solver.solver, formula.as_ast(), sign.as_ast())
        signs[str(sign)] = formula
    return signs


def conjunction(context: z3.Context, formulas: Sequence[Term]) -> Term:
    """That all of them hold; true if there are none."""
    return z3.BoolRef(z3.Z3_mk_and(context.ref(), len(formulas), _array(formulas)), context)


def disjunction(context: z3.Context, formulas: Sequence[Term]) -> Term:
    """That one of them holds; false if there are none."""
    return z3.BoolRef(z3.Z3_mk_or(context.ref(), len(formulas), _array(formulas)), context)


def implication(premise: Term, conclusion: Term) -> Term:
    """That the conclusion holds if the premise does."""
    context = premise.ctx
    return z3.BoolRef(z3.Z3_mk_implies(context.ref(), premise.as_ast(), conclusion.as_ast()), context)


def _array(formulas: Sequence[Term]) -> Any:
    return (z3.Ast * len(formulas))(*[formula.as_ast() for formula in formulas])
