"""The host's copies of sequences: rows that are right stay where they are, the others are moved, all caches in one batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.language.buffers import Memory
from kvstage_model.tier import Mirror, mirrored, still_right

from ..arguments.block_table import BlockTable, row_range
from ..batch import Batch
from ..errors import LayoutError
from ..pool import PagedPool
from ..stager import Stager
from .versions import BlockVersions

NOTHING = Mirror(-1, 0, 0)
"""The mirror of no block."""


class HostTier:
    """Copies, at the host, of sequences in `pools`: caches with one block table, whose changes `versions` is told of.

    Which sequence goes when memory is short, and which sequences share a prefix, is the caller's to decide: drop a
    `HostSequence` and its memory is free. Raises LayoutError if a pool has other blocks than `versions`.

    >>> from kvstage import ThreadDevice
    >>> latent = PagedPool(torch.arange(24.0).view(6, 4, 1))
    >>> versions, table = BlockVersions(6, 4), [5, 2, 0]
    >>> with ThreadDevice() as device, Stager(device, scheme="direct") as stager:
    ...     history = HostTier(stager, versions, [latent]).sequence()
    ...     versions.written(table, 0, 6)
    ...     first = history.read(table, 6)
    ...     first.wait()
    ...     versions.written(table, 6, 7)  # a decode step appends a row
    ...     second = history.read(table, 7)
    ...     second.wait()
    >>> first.moved, second.moved, second.rows[0].squeeze().tolist()
    (6, 1, [20.0, 21.0, 22.0, 23.0, 8.0, 9.0, 10.0])
    """

    def __init__(self, stager: Stager, versions: BlockVersions, pools: Sequence[PagedPool]) -> None:
        for pool in pools:
            if (pool.num_blocks, pool.block_size) != (versions.num_blocks, versions.block_size):
                raise LayoutError(
                    f"{pool} has {pool.num_blocks} blocks of {pool.block_size} rows, and versions are kept of "
                    f"{versions.num_blocks} blocks of {versions.block_size}: a tier's pools share their block tables"
                )
        self.stager, self.versions, self.pools = stager, versions, tuple(pools)

    def sequence(self) -> "HostSequence":
        """The copy of one sequence, which holds nothing yet."""
        return HostSequence(self)


@dataclass(frozen=True, eq=False)
class HostRead:
    """The first rows of a sequence at the host, [length, *row] for each pool in order; they may be used after `wait`.

    They are views of the tier's memory: the next read of the sequence may write them. `moved` counts the rows that were moved,
    in each pool.
    """

    rows: tuple[torch.Tensor, ...]
    moved: int
    _sequence: "HostSequence"
    _batch: Batch

    def wait(self) -> None:
        """Blocks until the rows have arrived. Raises what the work raised; then nothing counts as moved."""
        self._batch.wait()
        self._sequence.arrived(self)


class HostSequence:
    """The host's copy of one sequence. Not for several threads at once."""

    def __init__(self, tier: HostTier) -> None:
        self._tier = tier
        self._mirrors: list[Mirror] = []
        self._rows = [_memory(tier.stager, pool, 0) for pool in tier.pools]
        self._seen = 0
        self._table: NDArray[np.int64] = np.empty(0, np.int64)
        self._length = 0
        self._under_way: tuple[HostRead, list[Mirror], NDArray[np.int64], int, int] | None = None

    def read(self, block_table: BlockTable, length: int, *, after: object = None) -> HostRead:
        """Brings the first `length` rows of the sequence to the host: those that are right already are not moved.

        `after` as for `Stager.read`. Waits for the read before, if no one has. Raises a KVStageError, with nothing moved, if
        anything does not fit.
        """
        length, _ = row_range(length, length)
        tier = self._tier
        numbers = tier.versions.numbers(block_table, length)
        if self._under_way is not None:
            self._under_way[0].wait()
        self._demand_room(length)
        now = tier.versions.now
        mirrors, ranges = self._decide(numbers, length)
        with tier.stager.batch() as batch:
            for pool, rows in zip(tier.pools, self._rows, strict=True):
                for start, stop in ranges:
                    batch.read(pool, block_table, start, stop, out=rows[start:stop], after=after)
        moved = sum(stop - start for start, stop in ranges)
        made = HostRead(tuple(rows[:length] for rows in self._rows), moved, self, batch)
        self._under_way = made, mirrors, numbers, now, length
        return made

    def arrived(self, read: HostRead) -> None:
        """What was moved counts as right, as of the moment when it was read."""
        if self._under_way is not None and self._under_way[0] is read:
            _, self._mirrors, self._table, self._seen, self._length = self._under_way
            self._under_way = None

    def _decide(self, numbers: NDArray[np.int64], length: int) -> tuple[list[Mirror], list[tuple[int, int]]]:
        """The mirrors after the read, and the ranges of rows that must move, in order and as long as may be."""
        versions, size = self._tier.versions, self._tier.versions.block_size
        mirrors = [*self._mirrors[: len(numbers)], *[NOTHING] * (len(numbers) - len(self._mirrors))]
        ranges: list[tuple[int, int]] = []
        for place in self._places(numbers, length):
            number, block = int(numbers[place]), versions.block(int(numbers[place]))
            wanted = min(length - place * size, size)
            right = still_right(mirrors[place], number, block)
            mirrors[place] = mirrored(mirrors[place], number, block, wanted)
            if right < wanted:
                ranges.append((place * size + right, place * size + wanted))
        return mirrors, _joined(ranges)

    def _places(self, numbers: NDArray[np.int64], length: int) -> list[int]:
        """The places of a table of which the decision may be another than last time.

        It depends on nothing but the mirror, the block and what is known of that: for a place that has them unchanged, and had all
        its rows moved, it is that nothing moves.
        """
        before = min(len(self._table), len(numbers))
        whole = min(self._length, length) // self._tier.versions.block_size
        open_ = np.ones(len(numbers), np.bool_)
        open_[:before] = (self._table[:before] != numbers[:before]) | self._tier.versions.changed_since(
            numbers[:before], self._seen
        )
        open_[min(before, whole) :] = True
        return [int(place) for place in np.flatnonzero(open_)]

    def _demand_room(self, length: int) -> None:
        """Memory for so many rows: twice as much as before when it is too little, with what it holds."""
        for at, (pool, rows) in enumerate(zip(self._tier.pools, self._rows, strict=True)):
            if len(rows) < length:
                larger = _memory(self._tier.stager, pool, max(length, 2 * len(rows)))
                larger[: len(rows)] = rows
                self._rows[at] = larger


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same rows in as few ranges as may be."""
    if not ranges:
        return []
    cuts = [last[1] != following[0] for last, following in pairwise(ranges)]
    starts = [ranges[0][0], *(following[0] for following, apart in zip(ranges[1:], cuts, strict=True) if apart)]
    stops = [*(last[1] for last, apart in zip(ranges, cuts, strict=False) if apart), ranges[-1][1]]
    return list(zip(starts, stops, strict=True))


def _memory(stager: Stager, pool: PagedPool, length: int) -> torch.Tensor:
    """Pinned memory for rows of a pool, as the stager's device allocates it: [length, *row]."""
    size = length * pool.row_bytes
    memory = stager.device.allocate(Memory.PINNED, max(size, 1))[:size]
    rows: torch.Tensor = (
        memory.view(pool.dtype).view(length, *pool.row_shape) if size else torch.empty(0, *pool.row_shape, dtype=pool.dtype)
    )
    return rows
