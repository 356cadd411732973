"""Programs: the operations that the host issues, in order, with the call, phase and step of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..language.buffers import Access, Listed, Paged
from ..language.operations import (
    Gather,
    Launch,
    OnStream,
    Operation,
    Post,
    Release,
    Scatter,
    event_of,
    placed,
    reads,
    stream_of,
    writes,
)
from ..language.scheme import CALLER, EPILOGUE, Scheme

ELSEWHERE = "elsewhere"
HOST = "host"
"""The agent that issues everything; each stream is an agent of its own, under its name."""


@dataclass(frozen=True, slots=True, eq=False)
class Issued:
    """One operation where it stands: the call, its phase ("loop", "epilogue" or "caller"), and the step in that phase."""

    call: int
    phase: str
    step: int
    operation: Operation

    @property
    def agent(self) -> str:
        """What performs it: the host, a stream, or another party that rows were released, or a transfer posted, to."""
        if isinstance(self.operation, Release | Post):
            return ELSEWHERE
        return self.operation.stream if isinstance(self.operation, OnStream) else HOST


def unroll(calls: Sequence[Scheme]) -> tuple[Issued, ...]:
    """All operations of a sequence of calls, in the order in which the host issues them. Needs concrete schemes."""
    return tuple(unrolling(calls))


MOST_OPERATIONS = 300
"""Operations of a program that a search looks at: what orders them grows with their square."""


def beginning(calls: Sequence[Scheme]) -> tuple[Issued, ...]:
    """The first MOST_OPERATIONS operations of a sequence of calls. What is issued later orders nothing that came before."""
    return tuple(islice(unrolling(calls), MOST_OPERATIONS))


def unrolling(calls: Sequence[Scheme]) -> Iterator[Issued]:
    """The same, one operation at a time: a scheme that can't be unrolled to its end can be up to there."""
    for call, scheme in enumerate(calls):
        yield from unrolling_call(scheme, call)


def unrolling_call(scheme: Scheme, call: int) -> Iterator[Issued]:
    """The operations of one call, which has that number."""
    for phase in scheme.phases:
        for step in range(phase.steps):
            for operation in phase.step(step):
                yield Issued(call, phase.name, step, plain(scheme.in_call(operation, call)))


def plain(operation: Operation) -> Operation:
    """A concrete operation as data alone: what a kernel reaches becomes a list of places."""
    return placed(operation, _listed) if isinstance(operation, Gather | Scatter | Launch | Post) else operation


def _listed(access: Access) -> Access:
    if not isinstance(access, Paged):
        return access
    places = tuple(access.rows.address(position) for position in range(access.first + access.count))
    return replace(access, rows=Listed(places))


def describe(issued: Issued) -> str:
    """One operation in words: call, step, kind and rows."""
    where = issued.phase if issued.phase == EPILOGUE else f"{'row' if issued.phase == CALLER else 'step'} {issued.step}"
    call = f"call {issued.call}, " if issued.call else ""
    caller = "caller's " if issued.phase == CALLER else ""
    return f"{call}{where}: {caller}{wording(issued.operation)}"


def wording(operation: Operation) -> str:
    """Kind and rows of an operation: `Copy pool[3].rows[0:2] -> stage[0].rows[0:2]`."""
    name = type(operation).__name__
    source, target = reads(operation), writes(operation)
    rows = " -> ".join(span(access) for access in (*source, *target))
    event, stream = event_of(operation), stream_of(operation)
    named = f"{event.name}[{event.index}]" if event else ""
    return " ".join(part for part in (name, named, rows, f"on stream {stream}" if stream else "") if part)


def span(rows: Access) -> str:
    """Rows as text: `stage[0].rows[0:2]`."""
    if isinstance(rows, Paged):
        return f"{rows.buffer.name}.rows {rows.first}..{rows.first + rows.count - 1} of the transfer"
    return f"{rows.buffer.name}[{rows.slot}].rows[{rows.start}:{rows.start + rows.count}]"
