"""A loop over any partition, beside what it issues: the counts that T4 proves, and that the cost model reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..language.edits import Named
from ..language.parameters import SchemeFunction
from ..language.partitions import Piece, Pieces, Runs

Steps: TypeAlias = Callable[..., tuple[int, int]]
"""From which step on, and up to which, an operation is issued, once a step: a function of the scheme's arguments."""

Tally: TypeAlias = dict[Named, Steps]


@dataclass(frozen=True, eq=False)
class Loop:
    """One direction of a scheme: its function, and how often it issues what."""

    scheme: SchemeFunction
    tally: Tally
    once: tuple[Named, ...] = ()
    """What it issues once a call, before or after its loop, however many rows there are."""


@dataclass(frozen=True, eq=False)
class Loops:
    """Both directions of a scheme."""

    read: Loop
    write: Loop


def each_run(runs: Runs, **_: int) -> tuple[int, int]:
    """In step i for run i."""
    return 0, runs.number


def each_piece(pieces: Pieces[Piece], **_: int) -> tuple[int, int]:
    """In step i for piece i."""
    return 0, pieces.number
