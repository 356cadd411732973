"""Paths: the ways through a scheme's text, by what its conditions are decided to be.

`Paths.explore` runs a scheme once for every feasible sequence of decisions, and `follow` runs it again along one of them, for
other indices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import z3

from .errors import UnsupportedError
from .z3_terms import Term

R = TypeVar("R")

MOST_BRANCHES = 40
"""Decisions on one path. A staging step has a handful; a loop over a symbolic number of turns never ends."""
MOST_PATHS = 256
"""Paths of one step. More than this is a case analysis that nobody could read."""
IMPURE = "a step does something else when it runs again: it must depend on its index and its parameters alone"


@dataclass(frozen=True, eq=False)
class Path:
    """One feasible sequence of decisions."""

    decisions: tuple[bool, ...]


class Knowing(Protocol):
    """What a path asks of the world that it runs in."""

    context: z3.Context

    def impossible(self, *conditions: Term) -> bool:
        """Whether the facts rule the conditions out."""

    def refuse(self, reason: str) -> UnsupportedError:
        """The error to raise. It is remembered."""

    def demand_no_refusal(self) -> None:
        """Raises the first refusal again, if there was one."""


class Paths:
    """The path that is running: the decisions that it follows, and the conditions that it went by so far."""

    def __init__(self, world: Knowing) -> None:
        self._world = world
        self._decisions: list[bool] = []
        self.conditions: list[Term] = []
        self._exploring = False

    def decide(self, condition: Term) -> bool:
        """Which way the running path goes at this condition."""
        depth = len(self.conditions)
        if depth == len(self._decisions):
            if not self._exploring:
                raise self._world.refuse(IMPURE)
            if depth == MOST_BRANCHES:
                raise self._world.refuse(
                    f"a step with more than {MOST_BRANCHES} decisions: a loop over a symbolic number of turns?"
                )
            self._decisions.append(not self._world.impossible(*self.conditions, condition))
        taken = self._decisions[depth]
        self.conditions.append(condition if taken else z3.Not(condition))
        return taken

    def follow(self, path: Path, run: Callable[[], R]) -> tuple[Term, R]:
        """The condition of a path, and the result of running along it."""
        self._decisions, self.conditions = list(path.decisions), []
        try:
            result = run()
            self._world.demand_no_refusal()
            if len(self.conditions) != len(path.decisions):
                raise UnsupportedError(IMPURE)
            return z3.And(*self.conditions, z3.BoolVal(True, self._world.context)), result
        finally:
            self._decisions, self.conditions = [], []

    def explore(self, run: Callable[[], object]) -> list[Path]:
        """Every feasible path of a run: depth first, true before false."""
        found: list[Path] = []
        prefix: list[bool] | None = []
        self._exploring = True
        try:
            while prefix is not None:
                self._decisions, self.conditions = prefix, []
                run()
                self._world.demand_no_refusal()
                found.append(Path(tuple(self._decisions)))
                if len(found) > MOST_PATHS:
                    raise UnsupportedError(f"a step with more than {MOST_PATHS} paths")
                prefix = self._next()
        finally:
            self._exploring = False
            self._decisions, self.conditions = [], []
        return found

    def _next(self) -> list[bool] | None:
        """The decisions up to the last one that can be turned from true to false."""
        for last in reversed(range(len(self._decisions))):
            if self._decisions[last]:
                *before, taken = self.conditions[: last + 1]
                if not self._world.impossible(*before, z3.Not(taken)):
                    return [*self._decisions[:last], False]
        return None
