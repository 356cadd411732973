"""The ranges that a scheme function declares for its numbers."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias


@dataclass(frozen=True)
class AtLeast:
    """The least value of an integer parameter: `Annotated[int, AtLeast(1)]`."""

    least: int


Positive: TypeAlias = Annotated[int, AtLeast(1)]
"""A number that is at least 1, such as the slots of a ring."""
