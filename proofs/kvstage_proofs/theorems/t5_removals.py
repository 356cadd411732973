"""T5, every wait and record is needed: the removal table.

Each wait and each record of each scheme is taken out, named by its kind, stream and event, and by its phase if two
phases have one of that name. An instance must break T1 without it: so an obligation "ring without SyncEvent of 'filled'"
that must be REFUTED is a row of the table, and says by which schedule. If no instance breaks, it is needless, and the
scheme must lose it, or say when it is needed: `catalogue.ring_depths` does, of the one that a scheme keeps.
"""

from collections.abc import Iterator

from kvstage_model.language.edits import Named, edited, placed_orderings, without
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.search.instances import small_values

from ..obligation import Obligation, Verdict
from .t1_no_hazard import T1

MOST_ROWS = 4
"""Rows of the transfer on which all waits and records of a scheme are sure to occur."""


def named(function: SchemeFunction) -> tuple[Named, ...]:
    """The names of all waits and records of a scheme, over small instances: a guard may hide some from the smallest."""
    return tuple(dict.fromkeys(name for name, _ in _placed(function)))


def _placed(function: SchemeFunction) -> tuple[tuple[Named, str], ...]:
    """The same, each with its phase."""
    found = (placed_orderings(function(**values)) for values in small_values(declared(function), MOST_ROWS))
    return tuple(dict.fromkeys(place for places in found for place in places))


def removals(function: SchemeFunction, scheme: str, direction: str) -> Iterator[Obligation]:
    """One obligation for each wait and record: without it, T1 must fall."""
    places = _placed(function)
    for name, phase in places:
        shared = len([other for other, _ in places if other == name]) > 1
        edit, where = without(name, phase if shared else None), f" in the {phase}" if shared else ""
        yield T1.of(edited(function, edit), f"{scheme} without {name}{where}", direction, Verdict.REFUTED)
