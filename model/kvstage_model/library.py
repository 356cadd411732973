"""The schemes by the names that the library offers: a loop over a partition, in both directions."""

from collections.abc import Callable
from dataclasses import dataclass

from .parameters import Distinct
from .runs import PagedRows, by_block, by_row
from .scheme import Scheme
from .schemes import staged_read, staged_write


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


@dataclass(frozen=True)
class Pair:
    """The two directions of one scheme, as the library offers it by name."""

    read: Callable[[PagedRows], Scheme]
    write: Callable[[PagedRows], Scheme]


LIBRARY = {
    "per_row": Pair(per_row_read, per_row_write),
    "per_block": Pair(per_block_read, per_block_write),
}
"""What `Stager(device, scheme=NAME)` runs."""
