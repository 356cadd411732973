"""Instances that the solver's own values suggest, if a query is open: how many steps, which numbers, how many rows.

They are only suggested: each is tried as any small instance is, and breaks the claim by its schedule or not at all.
"""

from collections.abc import Callable, Iterator
from typing import Any

import z3

from kvstage_model.language.paged_rows import PagedRows, PairedRows
from kvstage_model.language.parameters import Parameter, SchemeFunction, declared
from kvstage_model.language.partitions import Pieces, by_chunk, by_row
from kvstage_model.language.ranges import Flags
from kvstage_model.language.scheme import Scheme
from kvstage_model.search.search import Counterexample, Fault
from kvstage_model.search.wording import value_in_words
from kvstage_model.symbolic.z3_terms import Term, assert_fast

from ..solvers.query import Query
from ..solvers.z3_solver import RLIMIT

LIMITS = (12, 24, 48, 96, 192)
"""How large numbers and steps may be, one after the other: the smallest instance is asked for first."""


def broken(function: SchemeFunction, query: Query, fault: Fault) -> Counterexample | None:
    """The first suggested instance that has a fault."""
    for calls, words in suggested(function, query):
        counterexample = fault(calls, words)
        if counterexample is not None:
            return counterexample
    return None


def suggested(function: SchemeFunction, query: Query) -> Iterator[tuple[tuple[Scheme, ...], str]]:
    """One call and two calls with the values of an open query, for each limit under which it is open."""
    parameters, context = declared(function), query.premise.ctx
    if any(parameter.kind is Flags or issubclass(parameter.kind, PairedRows) for parameter in parameters):
        return
    seen = set[str]()
    for most in LIMITS:
        values = _values(
            query, [term for each in parameters for call in ("call", "later call") for term in _terms(each, call, context)], most
        )
        if values is None:
            continue
        first, later = (
            {each.name: _concrete(each, call, context, values) for each in parameters} for call in ("call", "later call")
        )
        for calls in ((first,), (first, later)):
            words = "; then ".join(", ".join(f"{name} = {value_in_words(value)}" for name, value in each.items()) for each in calls)
            if words not in seen:
                seen.add(words)
                yield tuple(function(**each) for each in calls), f"{words}, {len(calls)} call{'s' if len(calls) > 1 else ''}"


def _values(query: Query, numbers: list[Term], most: int) -> Callable[[Term], int] | None:
    """What the solver takes for each number, all of them and the steps no larger than `most`; None if it finds nothing."""
    solver, context = z3.SimpleSolver(ctx=query.premise.ctx), query.premise.ctx
    solver.set("rlimit", RLIMIT)
    assert_fast(solver, query.negation)
    for number in (*numbers, *(z3.Int(step, context) for step in ("i", "j", "p"))):
        solver.add(number <= most)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return lambda term: int(model.eval(term, model_completion=True).as_long())


def _terms(parameter: Parameter, call: str, context: z3.Context) -> tuple[Term, ...]:
    """The numbers that say how large a parameter is in a call: a number's own, the rows of a transfer, the parts of a partition."""
    at, sort = z3.Int(call, context), z3.IntSort(context)

    def of(name: str) -> Term:
        return z3.Function(name, sort, sort)(at)

    if parameter.kind is int:
        return z3.Int(f"parameter {parameter.name}", context), of(f"parameter {parameter.name}")
    if parameter.kind is PagedRows:
        return (of(f"{parameter.name}.stop") - of(f"{parameter.name}.start"),)
    return (of(f"{parameter.name}.number"),)


def _concrete(parameter: Parameter, call: str, context: z3.Context, values: Callable[[Term], int]) -> Any:
    """A parameter of that size. A transfer has a row a block, in the order of the pool."""
    sizes = [values(term) for term in _terms(parameter, call, context)]
    if parameter.kind is int:
        return max(parameter.least, *sizes)
    rows = PagedRows(lambda block: block, max(LIMITS), 1, 0, max(0, *sizes, 0))
    if parameter.kind is PagedRows:
        return rows
    return by_chunk(rows, 1) if parameter.kind is Pieces else by_row(rows)
