"""What a call of a scheme of the library asks of a device, without running through its steps: from the counts that T4 proves."""

from dataclasses import dataclass

from ..language.buffers import Memory
from ..language.operations import Copy, Gather, Operation, Scatter, SyncEvent, SyncStream
from ..language.paged_rows import PagedRows
from ..language.parameters import declared
from ..language.scheme import Direction, Scheme
from .registry import OFFERED, SLOTS, usual_chunk


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


def counts(name: str, direction: Direction, rows: PagedRows, *, slots: int = SLOTS, most: int = 1) -> Counts:
    """What a call of the library's scheme `name` asks for, with chunks of the usual size."""
    entry = OFFERED[name]
    assert entry.bind is not None, "it is offered"
    loop = entry.loops.read if direction is Direction.READ else entry.loops.write
    options = {"rows": rows, "slots": slots, "chunk": usual_chunk(rows), "most": most}
    arguments = entry.bind(**{parameter.name: options[parameter.name] for parameter in declared(entry.bind)})
    scheme: Scheme = loop.scheme(**arguments)
    length = rows.stop - rows.start

    def issued(*kinds: type[Operation]) -> int:
        ranges = [steps(**arguments) for named, steps in loop.tally.items() if issubclass(named.kind, kinds)]
        return sum(past - first for first, past in ranges) + sum(issubclass(named.kind, kinds) for named in loop.once)

    copies, launches = issued(Copy), issued(Gather, Scatter)
    callers = scheme.result.host if scheme.result else None
    staged = any(buffer.memory is Memory.PINNED and buffer != callers for buffer in scheme.buffers)
    moved = length * (bool(copies) + bool(launches))  # each kind moves every row once
    return Counts(copies, issued(SyncStream, SyncEvent), launches, moved, length if staged else 0)
