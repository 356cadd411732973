"""L1, the lemmas about products and remainders that every other query is given instances of."""

from collections.abc import Callable, Iterator

import z3

from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import NONLINEAR, Query

CLAIM = (
    "Products by d of different numbers lie at least d apart, and so do numbers with equal remainders by d: for every "
    "d >= 1. These are the only nonlinear queries."
)

Lemmas = Callable[[z3.Context], Iterator[tuple[str, Term]]]


def queries(stated: Lemmas) -> Iterator[Query]:
    """One query for each lemma, over true multiplication."""
    context = z3.Context()
    for name, lemma in stated(context):
        true = z3.BoolVal(True, context)
        yield Query(name, [], true, z3.Not(lemma), true, must_hold=True, logic=NONLINEAR)


L1 = Theorem[Lemmas]("L1", "the gap lemma", CLAIM, queries, lambda _stated, _most: None)
