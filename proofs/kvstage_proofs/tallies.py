"""The counts of each scheme: in which steps each copy and each wait is issued. T4 proves that they are exact.

So a call issues n copies and n waits where its partition has n parts: `per_row` one of each for every row, `per_block` for
every block that the rows touch; `direct` n copies and one wait, `gather_pinned` and
`gather_host` one kernel and one wait.
"""

from collections.abc import Iterator

from kvstage_model import pipelines, schemes
from kvstage_model.operations import Copy, Gather, Scatter, SyncEvent, SyncStream
from kvstage_model.paired import PairedRows
from kvstage_model.runs import PagedRows, Piece, Pieces, Runs, by_block
from kvstage_model.variants import Named

from .counts import T4, T4_LOWER, Counted, Steps
from .obligation import Obligation


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


Tally = dict[Named, Steps]
_STAGED: Tally = {Named(Copy): each_run, Named(SyncStream): each_run}

COUNTED: tuple[tuple[str, str, Counted], ...] = (
    ("staged", "read", Counted(schemes.staged_read, _STAGED)),
    ("staged", "write", Counted(schemes.staged_write, _STAGED)),
    ("direct", "read", Counted(schemes.direct_read, {Named(Copy): each_run})),
    ("direct", "write", Counted(schemes.direct_write, {Named(Copy): each_run})),
    ("copy", "read", Counted(schemes.copy_read, {Named(Copy): each_small_block})),
    ("copy", "write", Counted(schemes.copy_write, {Named(Copy): each_small_block})),
    ("ring", "read", Counted(pipelines.ring_read, {Named(Copy): each_run, Named(SyncEvent): runs_late})),
    ("ring", "write", Counted(pipelines.ring_write, {Named(Copy): each_run, Named(SyncEvent): each_run})),
    ("gather_pinned", "read", Counted(schemes.gather_pinned_read, {Named(Gather): once})),
    ("gather_pinned", "write", Counted(schemes.gather_pinned_write, {Named(Scatter): once})),
    ("gather_host", "read", Counted(schemes.gather_host_read, {Named(Gather): once})),
    ("gather_host", "write", Counted(schemes.gather_host_write, {Named(Scatter): once})),
    (
        "gather",
        "read",
        Counted(pipelines.gather_read, {Named(Gather): each_piece, Named(Copy): each_piece, Named(SyncEvent): pieces_late}),
    ),
    (
        "gather",
        "write",
        Counted(pipelines.gather_write, {Named(Copy): each_piece, Named(Scatter): each_piece, Named(SyncEvent): each_piece}),
    ),
)


def obligations() -> Iterator[Obligation]:
    """The exact counts of each scheme, and the fewest waits that any could do with."""
    for scheme, direction, counted in COUNTED:
        yield T4.of(counted, scheme, direction)
    yield T4_LOWER.of(None, "one buffer")
