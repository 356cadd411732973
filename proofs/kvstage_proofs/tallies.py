"""T4 of each loop: that the counts which `kvstage_model.tallies` states are exact; and the fewest waits that any can do with."""

from collections.abc import Iterator

from kvstage_model.tallies import ONCE, TALLIES

from .counts import T4, T4_LOWER, Counted
from .obligation import Obligation


def obligations() -> Iterator[Obligation]:
    """The exact counts of each scheme, and the fewest waits that any could do with."""
    for function, tally in TALLIES.items():
        scheme, _, direction = function.__name__.rpartition("_")
        yield T4.of(Counted(function, tally, ONCE[function]), scheme, direction)
    yield T4_LOWER.of(None, "one buffer")
