"""What the solver alone makes of a theorem, with no small instance to disagree."""

from collections.abc import Iterator

from kvstage_proofs.judging.judge import verdict_of
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.query import Query
from kvstage_proofs.solvers.z3_solver import ask


def claimed(queries: Iterator[Query]) -> Verdict:
    """The verdict, in windows as wide as it takes. Stops at the first query that stays open."""
    asked = []
    for query in queries:
        asked.append(ask(query))
        while asked[-1].open and query.strengthened is not None:
            query = query.strengthened()
            asked[-1] = ask(query)
        if asked[-1].open:
            break
    return verdict_of(tuple(asked))[0]
