"""The schemes by their names: each a loop, how the library binds it to the rows of a transfer, and what it needs.

This is the only place where that binding is made: the loops know no partition, and the library no loop. To add a scheme, write
its loops in a file of their own and enter them here: the catalogue proves what is listed, and the library offers it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..language.buffers import Memory
from ..language.merged_runs import merged
from ..language.paged_rows import PagedRows
from ..language.parameters import Declared, SchemeFunction, declared
from ..language.partitions import Runs, by_block, by_chunk, by_row
from ..language.ranges import Positive
from .direct import DIRECT
from .gather import GATHER, GATHER_COPY, GATHER_HOST, GATHER_PINNED
from .loop import Loop, Loops
from .pool_copy import POOL_COPY
from .ring import RING
from .staged import STAGED

SLOTS = 4
"""Slots of a ring: enough that the host, the copies and the kernels each have one at work, and one is ready."""
CHUNK = 2048
"""Rows of a slot that a kernel fills, or of a merged run: 64 blocks of 32, from where on a call costs little beside its bytes."""

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """The two directions of one scheme, as the library runs it.

    Each is called with the rows of a transfer, and with `slots=`, `chunk=` and `most=` if it has such parameters.
    """

    read: SchemeFunction
    write: SchemeFunction


@dataclass(frozen=True)
class Needs:
    """When `scheme="auto"` may pick a scheme: what kernels must reach, and whether the rows at the host must be pinned."""

    kernels: Memory | None = None
    pinned: bool = False
    only_if_short: bool = False
    """Whether it is for rows that are not pinned, or for a budget of pinned memory: it stages in a few slots, which costs time."""


@dataclass(frozen=True, eq=False)
class SchemeEntry:
    """A scheme by its name."""

    name: str
    loops: Loops
    bind: Callable[..., Arguments] | None = None
    """The arguments of its loops for the rows of a transfer; the library offers a scheme that has it."""
    needs: Needs | None = None
    stages: bool = True
    """Whether it stages rows in a buffer, so that T2 has something to say."""
    into_pools: bool = False
    """Whether both directions write a pool, so that a table must not name a block twice in either."""
    proved_as_bound: bool = False
    """Whether it is proved as it is bound, and not over any partition: a loop that another entry has already."""

    @property
    def offered(self) -> Pair:
        """The scheme as the library runs it: its loops over the rows of a transfer."""
        assert self.bind is not None, f"the library does not offer {self.name}"
        return Pair(_bound(self.loops.read, self.bind), _bound(self.loops.write, self.bind))

    @property
    def proved(self) -> Pair:
        """The scheme as it is proved."""
        return self.offered if self.proved_as_bound else Pair(self.loops.read.scheme, self.loops.write.scheme)


def _bound(loop: Loop, bind: Callable[..., Arguments]) -> SchemeFunction:
    """A loop over the rows of a transfer; it demands a table without a block twice if its loop does."""
    distinct = any(parameter.distinct for parameter in declared(loop.scheme))
    parameters = (replace(each, distinct=distinct and each.kind is PagedRows) for each in declared(bind))
    scheme = loop.scheme
    return Declared(lambda *values, **named: scheme(**bind(*values, **named)), tuple(parameters))


def row_by_row(rows: PagedRows) -> Arguments:
    """A run for every row."""
    return {"runs": by_row(rows)}


def block_by_block(rows: PagedRows) -> Arguments:
    """A run for every block that the rows touch."""
    return {"runs": by_block(rows)}


def merged_blocks(rows: PagedRows, most: Positive = CHUNK) -> Arguments:
    """A run for every stretch of up to `most` rows that lie side by side in the pool, across its blocks."""
    return {"runs": runs_of(rows, most)}


def blocks_in_slots(rows: PagedRows, slots: Positive = SLOTS) -> Arguments:
    """A run for every block that the rows touch, through `slots` slots."""
    return {"runs": by_block(rows), "slots": slots}


def all_rows(rows: PagedRows) -> Arguments:
    """The rows as they are."""
    return {"rows": rows}


def in_chunks(rows: PagedRows, chunk: Positive = CHUNK) -> Arguments:
    """A piece for every `chunk` rows."""
    return {"pieces": by_chunk(rows, chunk)}


def chunks_in_slots(rows: PagedRows, slots: Positive = SLOTS, chunk: Positive = CHUNK) -> Arguments:
    """A piece for every `chunk` rows, through `slots` device slots and as many pinned ones."""
    return {"pieces": by_chunk(rows, chunk), "device_slots": slots, "pinned_slots": slots}


def runs_of(rows: PagedRows, most: int) -> Runs:
    """If a run can't be longer than a block, a pool with gaps between its blocks will do: it need not be one slot."""
    return merged(rows, most) if most > rows.block_size else by_block(rows)


def usual_chunk(rows: PagedRows) -> int:
    """About CHUNK rows, in whole blocks, and no more than there are to move: what a slot holds unless told otherwise."""
    return min(max(1, CHUNK // rows.block_size) * rows.block_size, max(1, rows.stop - rows.start))


ENTRIES = (
    SchemeEntry("staged", STAGED),
    SchemeEntry("per_row", STAGED, row_by_row, proved_as_bound=True),
    SchemeEntry("per_block", STAGED, block_by_block, proved_as_bound=True),
    SchemeEntry("per_run", STAGED, merged_blocks, Needs()),
    SchemeEntry("direct", DIRECT, block_by_block, Needs(pinned=True), stages=False),
    SchemeEntry("ring", RING, blocks_in_slots, Needs()),
    SchemeEntry("gather_pinned", GATHER_PINNED, all_rows, Needs(kernels=Memory.PINNED, pinned=True), stages=False),
    SchemeEntry("gather_host", GATHER_HOST, all_rows, Needs(kernels=Memory.PAGEABLE), stages=False),
    SchemeEntry("gather_copy", GATHER_COPY, in_chunks, Needs(kernels=Memory.DEVICE, pinned=True)),
    SchemeEntry("gather", GATHER, chunks_in_slots, Needs(kernels=Memory.DEVICE, only_if_short=True)),
    SchemeEntry("copy", POOL_COPY, stages=False, into_pools=True),
)
"""The schemes. `staged`, `direct` and `ring` are proved over any runs, `gather_copy` and `gather` over any pieces; the others
as they stand.

`per_run` is `staged` over merged runs, whose number depends on the table, so no step of theirs can be asked symbolically.
It is stated over any runs, as `staged` is, and `merged:P2` shows that merged runs are such: of a pool of one slot.
"""

OFFERED = {entry.name: entry for entry in ENTRIES if entry.bind is not None}
"""What the library offers."""

LIBRARY = {name: entry.offered for name, entry in OFFERED.items()}
"""What `Stager(device, scheme=NAME)` runs."""

COPY = Pair(POOL_COPY.read.scheme, POOL_COPY.write.scheme)
"""What `Stager.copy` runs, whatever the stager's scheme is: into a pool of larger blocks, and into one of smaller blocks.

The two are called with `IntoLarger` and `IntoSmaller`.
"""
