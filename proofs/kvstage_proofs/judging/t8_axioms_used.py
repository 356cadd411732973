"""T8, which axioms each theorem rests on: `kvstage prove --axioms`.

Each axiom has a sign in a query's facts (see `kvstage_model.symbolic.window.axiom`). Those signs that the solver used are enough
for the proof. An axiom is needed if the proof is lost without it, in the widest window too; one that was used and
is not needed can be replaced by others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import z3

from kvstage_model.ordering.axioms import AXIOMS
from kvstage_model.symbolic.window import axiom
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Judgement, Verdict
from ..solvers.query import Answer, Asked, Query
from ..solvers.z3_solver import RLIMIT, solve

NEEDED, USED, UNUSED = "needed", "used", "-"


def with_axioms(judgement: Judgement, queries: Sequence[Query]) -> Judgement:
    """The judgement with the axioms that its proof used, and those that it can't do without. Only a proof rests on any."""
    if judgement.verdict is not Verdict.PROVED:
        return judgement
    cores = [(query, core(query)) for query, asked in zip(queries, judgement.asked, strict=True) if _refuted(asked)]
    used = tuple(name for name in AXIOMS if any(name in names for _, names in cores))
    needed = tuple(name for name in used if any(name in names and not holds_without(query, name) for query, names in cores))
    return replace(judgement, used=used, needed=needed)


def _refuted(asked: Asked) -> bool:
    return asked.answer is Answer.UNSAT and asked.can_hold is Answer.SAT


def core(query: Query) -> frozenset[str]:
    """The axioms that are enough to refute a query's doubt. It must be refuted with all of them."""
    signs = {str(sign): name for name, sign in _signs(query)}
    solver = z3.Solver(ctx=query.negated_goal.ctx)
    solver.set("rlimit", RLIMIT)
    solver.add(*_others(query), query.premise, query.negated_goal)
    if solver.check(*(sign for _, sign in _signs(query))) != z3.unsat:
        raise RuntimeError(f"{query.name!r} was refuted, and is not any more when it is asked again for its axioms")
    return frozenset(signs[str(sign)] for sign in solver.unsat_core())


def holds_without(query: Query, name: str) -> bool:
    """Whether a query's doubt is refuted without one axiom, by this query or one with more facts."""
    asked: Query | None = query
    while asked is not None:
        left = [sign for other, sign in _signs(asked) if other != name]
        if solve([*_others(asked), *left, asked.premise, asked.negated_goal])[0] is Answer.UNSAT:
            return True
        asked = asked.strengthened() if asked.strengthened is not None else None
    return False


def _signs(query: Query) -> list[tuple[str, Term]]:
    """The axioms among the facts of a query; a query that speaks of no time has none."""
    signs = [(name, axiom(name, query.negated_goal.ctx)) for name in AXIOMS]
    return [(name, sign) for name, sign in signs if any(sign.eq(fact) for fact in query.facts)]


def _others(query: Query) -> list[Term]:
    signs = [sign for _, sign in _signs(query)]
    return [fact for fact in query.facts if not any(fact.eq(sign) for sign in signs)]


def table(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Theorem by axiom, a line for each that was proved from axioms."""
    shown = [judgement for judgement in judgements if judgement.used]
    width = max((len(judgement.statement.name) for judgement in shown), default=0)
    yield f"{'axioms':<{width}}  {'  '.join(f'{name:<{len(NEEDED)}}' for name in AXIOMS)}".rstrip()
    for judgement in shown:
        cells = [NEEDED if name in judgement.needed else USED if name in judgement.used else UNUSED for name in AXIOMS]
        yield f"{judgement.statement.name:<{width}}  {'  '.join(f'{cell:<{len(NEEDED)}}' for cell in cells)}".rstrip()
    yield f"{NEEDED}: lost without it; {USED}: used, and could be done without; {UNUSED}: not used"
