"""The ranges that a scheme function declares for its numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias


@dataclass(frozen=True)
class AtLeast:
    """The least value of an integer parameter: `Annotated[int, AtLeast(1)]`."""

    least: int


Positive: TypeAlias = Annotated[int, AtLeast(1)]
"""A number that is at least 1, such as the slots of a ring."""


ANSWER = ".answer"
"""How the names of the unknown functions end that stand for flags."""


@dataclass(frozen=True)
class Flags:
    """Answers that no one can foresee, such as those of queries: 1 or 0 for each step. A scheme declares them as a parameter.

    Each query of a step needs flags of its own, and so do the queries of each loop of a session.
    """

    of: Callable[[int], int]

    def __call__(self, step: int) -> int:
        """The answer in a step."""
        return self.of(step)
