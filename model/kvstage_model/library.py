"""The schemes by the names that the library offers: a loop bound to a partition, in both directions.

This is the only place where that binding is made: the loops know no partition, and the library no loop.
"""

from dataclasses import dataclass

from . import pipelines, schemes
from .merging import merged
from .parameters import Distinct, SchemeFunction
from .ranges import Positive
from .runs import PagedRows, Runs, by_block, by_chunk, by_row
from .scheme import Scheme
from .schemes import (
    copy_read,
    copy_write,
    gather_host_read,
    gather_host_write,
    gather_pinned_read,
    gather_pinned_write,
    staged_read,
    staged_write,
)

SLOTS = 4
"""Slots of a ring: enough that the host, the copies and the kernels each have one at work, and one is ready."""
CHUNK = 2048
"""Rows of a slot that a kernel fills, or of a merged run: 64 blocks of 32, from where on a call costs little beside its bytes."""


def per_row_read(rows: PagedRows) -> Scheme:
    """A copy and a wait for every row: the loop that kvstage's users start from."""
    return staged_read(by_row(rows))


def per_row_write(rows: Distinct[PagedRows]) -> Scheme:
    """A copy and a wait for every row."""
    return staged_write(by_row(rows))


def per_block_read(rows: PagedRows) -> Scheme:
    """A copy and a wait for every block that the rows touch."""
    return staged_read(by_block(rows))


def per_block_write(rows: Distinct[PagedRows]) -> Scheme:
    """A copy and a wait for every block that the rows touch."""
    return staged_write(by_block(rows))


def per_run_read(rows: PagedRows, most: Positive = CHUNK) -> Scheme:
    """A copy and a wait for every stretch of up to `most` rows that lie side by side in the pool, across its blocks."""
    return staged_read(runs_of(rows, most))


def per_run_write(rows: Distinct[PagedRows], most: Positive = CHUNK) -> Scheme:
    """A copy and a wait for every stretch of up to `most` rows that lie side by side in the pool, across its blocks."""
    return staged_write(runs_of(rows, most))


def runs_of(rows: PagedRows, most: int) -> Runs:
    """Where a run can't be longer than a block, a pool with gaps between its blocks will do: it need not be one slot."""
    return merged(rows, most) if most > rows.block_size else by_block(rows)


def direct_read(rows: PagedRows) -> Scheme:
    """A copy for every block that the rows touch, into the pinned result, and one wait."""
    return schemes.direct_read(by_block(rows))


def direct_write(rows: Distinct[PagedRows]) -> Scheme:
    """A copy for every block that the rows touch, from the caller's pinned rows, and one wait."""
    return schemes.direct_write(by_block(rows))


def ring_read(rows: PagedRows, slots: Positive = SLOTS) -> Scheme:
    """A copy and an event for every block that the rows touch, through a ring of `slots` pinned blocks."""
    return pipelines.ring_read(by_block(rows), slots)


def ring_write(rows: Distinct[PagedRows], slots: Positive = SLOTS) -> Scheme:
    """A copy and an event for every block that the rows touch, through a ring of `slots` pinned blocks."""
    return pipelines.ring_write(by_block(rows), slots)


def gather_read(rows: PagedRows, slots: Positive = SLOTS, chunk: Positive = CHUNK) -> Scheme:
    """A kernel and a copy for every `chunk` rows, through `slots` device slots and as many pinned ones."""
    return pipelines.gather_read(by_chunk(rows, chunk), slots, slots)


def gather_write(rows: Distinct[PagedRows], slots: Positive = SLOTS, chunk: Positive = CHUNK) -> Scheme:
    """A copy and a kernel for every `chunk` rows, through `slots` pinned slots and as many device ones."""
    return pipelines.gather_write(by_chunk(rows, chunk), slots, slots)


def gather_copy_read(rows: PagedRows, chunk: Positive = CHUNK) -> Scheme:
    """A kernel for every `chunk` rows, and a copy of them into the pinned result; one wait."""
    return schemes.gather_copy_read(by_chunk(rows, chunk))


def gather_copy_write(rows: Distinct[PagedRows], chunk: Positive = CHUNK) -> Scheme:
    """A copy for every `chunk` of the caller's pinned rows, and a kernel that unpacks them; one wait."""
    return schemes.gather_copy_write(by_chunk(rows, chunk))


def usual_chunk(rows: PagedRows) -> int:
    """About CHUNK rows, in whole blocks, and no more than there are to move: what a slot holds unless told otherwise."""
    return min(max(1, CHUNK // rows.block_size) * rows.block_size, max(1, rows.stop - rows.start))


@dataclass(frozen=True)
class Pair:
    """The two directions of one scheme, as the library offers it by name.

    Each is called with the rows of a transfer, and with `slots=`, `chunk=` and `most=` where it has such parameters.
    """

    read: SchemeFunction
    write: SchemeFunction


LIBRARY = {
    "per_row": Pair(per_row_read, per_row_write),
    "per_block": Pair(per_block_read, per_block_write),
    "per_run": Pair(per_run_read, per_run_write),
    "direct": Pair(direct_read, direct_write),
    "ring": Pair(ring_read, ring_write),
    "gather_pinned": Pair(gather_pinned_read, gather_pinned_write),
    "gather_host": Pair(gather_host_read, gather_host_write),
    "gather_copy": Pair(gather_copy_read, gather_copy_write),
    "gather": Pair(gather_read, gather_write),
}
"""What `Stager(device, scheme=NAME)` runs."""

COPY = Pair(copy_read, copy_write)
"""What `Stager.copy` runs, whatever the stager's scheme is: into a pool of larger blocks, and into one of smaller blocks.

The two are called with `IntoLarger` and `IntoSmaller`.
"""
