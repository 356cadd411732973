"""The two tables, how a function is entered in them, and what functions of several files look at."""

from collections.abc import Callable
from types import SimpleNamespace

Late = Callable[[int], object]
LATE = 3000
SEEN: list[int] = []
NAMES = SimpleNamespace(steps=0)
IMPURE: dict[str, Late] = {}
MAKERS: dict[str, Callable[[], Late]] = {}


def impure(function: Late) -> Late:
    """Enters a function under its name."""
    IMPURE[function.__name__] = function
    return function


def maker(function: Callable[[], Late]) -> Callable[[], Late]:
    """Enters a maker under its name."""
    MAKERS[function.__name__] = function
    return function
