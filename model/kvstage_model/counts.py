"""What a call of a scheme of the library asks of a device, without running through its steps: from the counts that T4 proves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import pipelines, schemes
from .buffers import Memory
from .library import SLOTS, Pair, runs_of, usual_chunk
from .operations import Copy, Gather, Operation, Scatter, SyncEvent, SyncStream
from .runs import PagedRows, by_block, by_chunk, by_row
from .scheme import Direction, Scheme
from .tallies import ONCE, TALLIES


@dataclass(frozen=True, slots=True)
class Counts:
    """Asynchronous copies, blocking waits and kernels of one call; and rows, each time that one of them or the host moves it.

    `moved` counts rows that copies and kernels move, `taken` those that the host copies between staging and the caller.
    """

    copies: int
    waits: int
    launches: int
    moved: int
    taken: int


@dataclass(frozen=True)
class Bound:
    """A loop, and the arguments that the library's scheme of a name gives it."""

    loop: Pair
    arguments: Callable[[PagedRows, int, int, int], Mapping[str, Any]]
    """For the rows of a transfer, slots, chunk, and the most rows of a merged run."""


_STAGED = Pair(schemes.staged_read, schemes.staged_write)

BOUND: dict[str, Bound] = {
    "per_row": Bound(_STAGED, lambda rows, slots, chunk, most: {"runs": by_row(rows)}),
    "per_block": Bound(_STAGED, lambda rows, slots, chunk, most: {"runs": by_block(rows)}),
    "per_run": Bound(_STAGED, lambda rows, slots, chunk, most: {"runs": runs_of(rows, most)}),
    "direct": Bound(Pair(schemes.direct_read, schemes.direct_write), lambda rows, slots, chunk, most: {"runs": by_block(rows)}),
    "ring": Bound(
        Pair(pipelines.ring_read, pipelines.ring_write),
        lambda rows, slots, chunk, most: {"runs": by_block(rows), "slots": slots},
    ),
    "gather_pinned": Bound(
        Pair(schemes.gather_pinned_read, schemes.gather_pinned_write), lambda rows, slots, chunk, most: {"rows": rows}
    ),
    "gather_host": Bound(
        Pair(schemes.gather_host_read, schemes.gather_host_write), lambda rows, slots, chunk, most: {"rows": rows}
    ),
    "gather_copy": Bound(
        Pair(schemes.gather_copy_read, schemes.gather_copy_write),
        lambda rows, slots, chunk, most: {"pieces": by_chunk(rows, chunk)},
    ),
    "gather": Bound(
        Pair(pipelines.gather_read, pipelines.gather_write),
        lambda rows, slots, chunk, most: {"pieces": by_chunk(rows, chunk), "device_slots": slots, "pinned_slots": slots},
    ),
}
"""Of each scheme of the library."""


def counts(name: str, direction: Direction, rows: PagedRows, *, slots: int = SLOTS, most: int = 1) -> Counts:
    """What a call of the library's scheme `name` asks for, with chunks of the usual size."""
    bound = BOUND[name]
    loop = bound.loop.read if direction is Direction.READ else bound.loop.write
    arguments = bound.arguments(rows, slots, usual_chunk(rows), most)
    scheme: Scheme = loop(**arguments)
    length = rows.stop - rows.start

    def issued(*kinds: type[Operation]) -> int:
        ranges = [steps(**arguments) for named, steps in TALLIES[loop].items() if issubclass(named.kind, kinds)]
        return sum(past - first for first, past in ranges) + sum(issubclass(named.kind, kinds) for named in ONCE[loop])

    copies, launches = issued(Copy), issued(Gather, Scatter)
    callers = scheme.result.host if scheme.result else None
    staged = any(buffer.memory is Memory.PINNED and buffer != callers for buffer in scheme.buffers)
    moved = length * (bool(copies) + bool(launches))  # each kind moves every row once
    return Counts(copies, issued(SyncStream, SyncEvent), launches, moved, length if staged else 0)
