"""The axioms: what program order of two operations forces on the moments when they happen. Stated once.

Each operation has three moments. A host operation is issued when it begins, and has ended when the host goes on. Work
of a stream is issued by the host, and begins and ends later. The prover reads `edges` with symbolic indices, the race
finder with ints. Only the order of moments counts: no axiom speaks of a duration, or of one driver's habits.

Sources: A1 is the host language's own order. A2, A3: CUDA Programming Guide, "Asynchronous Concurrent Execution",
streams; OpenCL 3.0, 5.11, in-order command queues. A4: CUDA Runtime API, cudaStreamSynchronize; OpenCL clFinish.
A5: cudaEventRecord, cudaEventSynchronize: an event captures the stream's work at the call of the last record, and one that
was never recorded does not block. A query that says yes is such a wait, over at once (cudaEventQuery). A6:
cudaStreamWaitEvent: captures at the call and holds back that stream only. A7 is the contract of an agent outside all streams:
its writes have ended when rows are taken back, and its reads and writes when a transfer is taken (a network card: InfiniBand
Architecture, work completions; a disk: io_uring_enter(2), completion queue entries). No such agent takes part in a stream (CUDA,
GPUDirect RDMA, "Synchronization and Memory Ordering": a third device sees no order of streams), so nothing orders its begin but
the host that posts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ..language.buffers import Rows
from ..language.operations import (
    Acquire,
    Event,
    Later,
    OnStream,
    Operation,
    Post,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
    covers,
    event_of,
    reads,
    stream_of,
    writes,
)

AXIOMS = {
    "A1": "the host runs in program order: what it does itself has ended before it issues the next operation",
    "A2": "work of a stream begins at or after its issue",
    "A3": "a stream is in order: its work begins after all that was issued there before has ended",
    "A4": "a stream synchronize returns after all that was issued on the stream before has ended",
    "A5": "an event synchronize returns after what the event's last record marks has ended; never recorded, it does not block",
    "A6": "a stream's wait holds back its later work until what the event's last record marks at that moment has ended",
    "A7": "rows that were released to somebody else are taken back, and a posted transfer is taken, after its work has ended",
}
"""Each axiom in a sentence."""


class Moment(Enum):
    """A moment of one operation; ISSUE <= BEGIN <= END always (A2)."""

    ISSUE = "issue"
    BEGIN = "begin"
    END = "end"


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """`earlier` of the first operation comes no later than `later` of the second one, if `when` holds.

    With `last_record`, only if the first one is the last record of its event before the second one, or if all
    records of that event are on one stream: then an earlier record has ended before the last one has (A3).
    """

    axiom: str
    earlier: Moment
    later: Moment
    when: bool = True
    last_record: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The order of two moments of one operation; `strict` if something happens in between."""

    axiom: str
    earlier: Moment
    later: Moment
    strict: bool = False


def own(operation: Operation) -> Iterator[Own]:
    """The order of an operation's own moments (A1 for the host's, A2 for a stream's)."""
    if isinstance(operation, Later):
        yield Own("A2", Moment.ISSUE, Moment.BEGIN)
    else:
        yield Own("A1", Moment.ISSUE, Moment.BEGIN)
        yield Own("A1", Moment.BEGIN, Moment.ISSUE)
    yield Own("A2", Moment.BEGIN, Moment.END, strict=bool(reads(operation) or writes(operation)))


def edges(first: Operation, second: Operation) -> Iterator[Edge]:
    """What follows if the host issues `first` before `second`."""
    yield Edge("A1", Moment.ISSUE if isinstance(first, Later) else Moment.END, Moment.ISSUE)
    if isinstance(first, Release) and isinstance(second, Acquire):
        yield Edge("A7", Moment.END, Moment.END, covers(second.target, first.target))
    if isinstance(first, Post) and isinstance(second, Take):
        yield Edge("A7", Moment.END, Moment.END, same_event(first.event, second.event))
    if not isinstance(first, OnStream):
        return
    if isinstance(second, OnStream):
        yield Edge("A3", Moment.END, Moment.BEGIN, first.stream == second.stream)
    if isinstance(second, SyncStream):
        yield Edge("A4", Moment.END, Moment.END, first.stream == second.stream)
    if isinstance(first, RecordEvent) and isinstance(second, SyncEvent):
        yield Edge("A5", Moment.END, Moment.END, same_event(first.event, second.event), last_record=True)
    if isinstance(first, RecordEvent) and isinstance(second, QueryEvent):
        yes = same_event(first.event, second.event) & (second.answer != 0)
        yield Edge("A5", Moment.END, Moment.END, yes, last_record=True)
    if isinstance(first, RecordEvent) and isinstance(second, WaitEvent):
        yield Edge("A6", Moment.END, Moment.END, same_event(first.event, second.event), last_record=True)


def nearest(operations: Sequence[Operation]) -> Iterator[set[int]]:
    """For each operation those before it that order it by themselves: an edge from any other one follows from theirs.

    The one right before it (A1), the last one on its stream (A3, A4), the last record of its event (A5, A6), and the releases of
    rows that it is the first to take back, or the transfers that it is the first to take (A7).
    """
    on_stream: dict[str, int] = {}
    recorded: dict[tuple[str, int, int], int] = {}
    released: dict[tuple[str, int], dict[int, Rows]] = {}
    posted: dict[tuple[str, int, int], set[int]] = {}
    for number, operation in enumerate(operations):
        stream, event = stream_of(operation), event_of(operation)
        key = None if event is None else (event.name, event.index, event.call)
        found = {number - 1, on_stream.get(stream or "", -1), recorded.get(key, -1) if key else -1} - {-1}
        if isinstance(operation, Acquire):
            target = operation.target
            lent = released.get((target.buffer.name, target.slot), {})
            returned = [release for release, rows in lent.items() if covers(target, rows)]
            found.update(returned)
            for release in returned:
                del lent[release]
        if key and isinstance(operation, Take):
            found |= posted.pop(key, set())
        yield found
        if stream is not None and isinstance(operation, OnStream):
            on_stream[stream] = number
        if key and isinstance(operation, RecordEvent):
            recorded[key] = number
        if isinstance(operation, Release):
            released.setdefault((operation.target.buffer.name, operation.target.slot), {})[number] = operation.target
        if key and isinstance(operation, Post):
            posted.setdefault(key, set()).add(number)


def not_yet(first: Operation, second: Operation) -> bool:
    """Whether `second`, a query that said "not yet", must have begun before `first` ended, if `first` is its last record.

    Needs concrete operations. The proof does without it: it may assume too little, never too much.
    """
    if not (isinstance(first, RecordEvent) and isinstance(second, QueryEvent)):
        return False
    return second.answer == 0 and same_event(first.event, second.event)


def same_event(first: Event, second: Event) -> bool:
    """Whether two names are names of one event."""
    return (first.name == second.name) & (first.index == second.index) & (first.call == second.call)
