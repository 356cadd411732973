"""z3's connectives for terms that are known to fit: booleans of one context.

z3's own `And`, `Or`, `Implies` and `Solver.add` ask each argument for its sort and context again. For a window, which is
some thousands of small formulas, that takes longer than solving it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any
"""A z3 term (z3 ships no types)."""


def tell(solver: Any, formulas: Iterable[Term]) -> None:
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
    """That all of them hold; true where there are none."""
    return z3.BoolRef(z3.Z3_mk_and(context.ref(), len(formulas), _array(formulas)), context)


def disjunction(context: z3.Context, formulas: Sequence[Term]) -> Term:
    """That one of them holds; false where there are none."""
    return z3.BoolRef(z3.Z3_mk_or(context.ref(), len(formulas), _array(formulas)), context)


def implication(premise: Term, conclusion: Term) -> Term:
    """That the conclusion holds where the premise does."""
    context = premise.ctx
    return z3.BoolRef(z3.Z3_mk_implies(context.ref(), premise.as_ast(), conclusion.as_ast()), context)


def unknowns(formulas: Sequence[Term]) -> list[Term]:
    """All symbols, and all uses of functions, that formulas of one context are about."""
    context = formulas[0].ctx
    ref, found = context.ref(), []
    seen, left = set(), [formula.as_ast() for formula in formulas]
    while left:
        ast = left.pop()
        number = z3.Z3_get_ast_id(ref, ast)
        if number in seen:
            continue
        seen.add(number)
        if z3.Z3_get_ast_kind(ref, ast) != z3.Z3_APP_AST:  # a number
            continue
        app = z3.Z3_to_app(ref, ast)
        left += [z3.Z3_get_app_arg(ref, app, at) for at in range(z3.Z3_get_app_num_args(ref, app))]
        if z3.Z3_get_decl_kind(ref, z3.Z3_get_app_decl(ref, app)) == z3.Z3_OP_UNINTERPRETED:
            boolean = z3.Z3_get_sort_kind(ref, z3.Z3_get_sort(ref, ast)) == z3.Z3_BOOL_SORT
            found.append((z3.BoolRef if boolean else z3.ArithRef)(ast, context))
    return found


def _array(formulas: Sequence[Term]) -> Any:
    return (z3.Ast * len(formulas))(*[formula.as_ast() for formula in formulas])
