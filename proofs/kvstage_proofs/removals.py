"""T5, every wait and record is needed: the removal table.

Each wait and each record of each scheme is taken out, named by its kind, stream and event. An instance must break T1
without it. Where none does, it is needless, and the scheme must lose it, or say when it is needed.
"""

from collections.abc import Iterator

from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.variants import Named, edited, orderings, without

from .hazards import T1
from .obligation import Obligation, Verdict

MOST_ROWS = 4
"""Rows of the transfer on which all waits and records of a scheme are sure to occur."""


def named(function: SchemeFunction) -> tuple[Named, ...]:
    """The names of all waits and records of a scheme, over small instances: a guard may hide some from the smallest."""
    found = (orderings(function(**values)) for values in small_values(declared(function), MOST_ROWS))
    return tuple(dict.fromkeys(name for names in found for name in names))


def removals(function: SchemeFunction, scheme: str, direction: str) -> Iterator[Obligation]:
    """One obligation for each wait and record: without it, T1 must fall."""
    for name in named(function):
        yield T1.of(edited(function, without(name)), f"{scheme} without {name}", direction, Verdict.REFUTED)
