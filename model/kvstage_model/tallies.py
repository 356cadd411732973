"""The counts of each scheme: in which steps of its loop each copy, kernel and blocking wait is issued, and which of them once
a call. T4 proves that they are exact, and that there are no others.

So a call issues n copies and n waits where its partition has n parts: `per_row` one of each for every row, `per_block` for
every block that the rows touch; `direct` n copies and one wait, `gather_pinned` and `gather_host` one kernel and one wait,
`gather_copy` n kernels, n copies and one wait.
"""

from collections.abc import Callable
from typing import TypeAlias

from . import pipelines, schemes
from .operations import Copy, Gather, Scatter, SyncEvent, SyncStream
from .paired import PairedRows
from .parameters import SchemeFunction
from .runs import PagedRows, Piece, Pieces, Runs, by_block
from .variants import Named

Steps: TypeAlias = Callable[..., tuple[int, int]]
"""From which step on, and up to which, an operation is issued, once a step: a function of the scheme's arguments."""
Tally: TypeAlias = dict[Named, Steps]


def each_run(runs: Runs, **_: int) -> tuple[int, int]:
    """In step i for run i."""
    return 0, runs.number


def each_piece(pieces: Pieces[Piece], **_: int) -> tuple[int, int]:
    """In step i for piece i."""
    return 0, pieces.number


def runs_late(runs: Runs, slots: int) -> tuple[int, int]:
    """In step i + slots - 1 for run i."""
    return slots - 1, runs.number + slots - 1


def pieces_late(pieces: Pieces[Piece], device_slots: int, pinned_slots: int) -> tuple[int, int]:
    """In step i + pinned_slots - 1 for piece i."""
    return pinned_slots - 1, pieces.number + pinned_slots - 1


def once(rows: PagedRows) -> tuple[int, int]:
    """In one step, if there is a row at all."""
    return 0, min(1, rows.stop - rows.start)


def each_small_block(rows: PairedRows) -> tuple[int, int]:
    """In step i for the i-th of the smaller blocks that the rows touch."""
    return 0, by_block(rows.small).number


_STAGED: Tally = {Named(Copy): each_run, Named(SyncStream): each_run}

TALLIES: dict[SchemeFunction, Tally] = {
    schemes.staged_read: _STAGED,
    schemes.staged_write: _STAGED,
    schemes.direct_read: {Named(Copy): each_run},
    schemes.direct_write: {Named(Copy): each_run},
    schemes.copy_read: {Named(Copy): each_small_block},
    schemes.copy_write: {Named(Copy): each_small_block},
    pipelines.ring_read: {Named(Copy): each_run, Named(SyncEvent): runs_late},
    pipelines.ring_write: {Named(Copy): each_run, Named(SyncEvent): each_run},
    schemes.gather_pinned_read: {Named(Gather): once},
    schemes.gather_pinned_write: {Named(Scatter): once},
    schemes.gather_host_read: {Named(Gather): once},
    schemes.gather_host_write: {Named(Scatter): once},
    schemes.gather_copy_read: {Named(Gather): each_piece, Named(Copy): each_piece},
    schemes.gather_copy_write: {Named(Copy): each_piece, Named(Scatter): each_piece},
    pipelines.gather_read: {Named(Gather): each_piece, Named(Copy): each_piece, Named(SyncEvent): pieces_late},
    pipelines.gather_write: {Named(Copy): each_piece, Named(Scatter): each_piece, Named(SyncEvent): each_piece},
}
"""Of each loop. What ONCE has comes on top."""

_WAIT = (Named(SyncStream),)

ONCE: dict[SchemeFunction, tuple[Named, ...]] = {
    schemes.staged_read: (),
    schemes.staged_write: (),
    schemes.direct_read: _WAIT,
    schemes.direct_write: _WAIT,
    schemes.copy_read: _WAIT,
    schemes.copy_write: _WAIT,
    pipelines.ring_read: (),
    pipelines.ring_write: _WAIT,
    schemes.gather_pinned_read: _WAIT,
    schemes.gather_pinned_write: _WAIT,
    schemes.gather_host_read: _WAIT,
    schemes.gather_host_write: _WAIT,
    schemes.gather_copy_read: _WAIT,
    schemes.gather_copy_write: _WAIT,
    pipelines.gather_read: (),
    pipelines.gather_write: _WAIT,
}
"""What each scheme issues once a call, before or behind its loop, however many rows there are."""
