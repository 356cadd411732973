"""Sessions: how an engine calls the schemes again and again, with work of its own before, between and after them.

A ring session is one turn of an engine: its kernels write the pool, rows are read from it, kernels read and write it, rows
are written back, kernels read it. Staging slots are shared by reads and writes, and used again in every turn. All edges
to and from the caller's kernels are events; `t5_removals` shows that none of them can be left out.
"""

from collections.abc import Iterator

from ..language.edits import on_stream
from ..language.operations import Event, HostRead, HostWrite, Launch, Operation, RecordEvent, SyncEvent, WaitEvent
from ..language.parameters import Distinct
from ..language.partitions import Runs
from ..language.ranges import Positive
from ..language.scheme import Phase, Session, once
from .base import COMPUTE, STREAM
from .direct import direct_read, direct_write
from .ring import ring_read, ring_write

WRITES = "writes"
"""A stream of its own for the copies of writes."""


def ring_session(reads: Runs, writes: Distinct[Runs], slots: Positive) -> Session:
    """Reads and writes share one ring of slots and one stream. Nothing drains between turns: events outlive them."""
    return _session("ring session", reads, writes, slots, STREAM)


def ring_session_on_two_streams(reads: Runs, writes: Distinct[Runs], slots: Positive) -> Session:
    """Reads and writes share one ring of slots, each on a stream of its own."""
    return _session("ring session on two streams", reads, writes, slots, WRITES)


def batch_session(writes: Distinct[Runs], reads: Runs) -> Session:
    """A write and a read under way at once, both by "direct": the host waits for the last one's event only.

    Then it uses what was read, and fills again what it wrote from: so calls of a batch, or left under way, may follow each
    other on one stream without a wait between them.
    """
    write, read = direct_write(writes), direct_read(reads)
    (_, rows), (pool, out) = write.buffers, read.buffers

    def uses(position: int) -> Iterator[Operation]:
        yield HostRead(out.at(0, position, 1))

    def fills(position: int) -> Iterator[Operation]:
        yield HostWrite(rows.at(0, position, 1))

    return Session.of(
        "batch session",
        (pool, rows, out),
        Phase("write", write.steps, write.step),
        Phase("read", read.steps, read.step),
        once("wait", RecordEvent(Event("arrived"), STREAM), SyncEvent(Event("arrived"))),
        Phase("use", reads.length, uses),
        Phase("fill", writes.length, fills),
    )


def _session(name: str, reads: Runs, writes: Runs, slots: int, write_stream: str) -> Session:
    read, write = ring_read(reads, slots), on_stream(ring_write(writes, slots), STREAM, write_stream)
    pool = next(buffer for buffer in read.buffers if buffer.name == "pool")

    def kernels(phase: str, reading: bool, writing: bool) -> Phase:
        def step(block: int) -> Iterator[Operation]:
            rows = (pool.at(block, 0, pool.rows),)
            yield Launch(COMPUTE, rows if reading else (), rows if writing else ())

        return Phase(phase, pool.slots, step)

    def edge(event: str, source: str, target: str) -> Phase:
        return once(event, RecordEvent(Event(event), source), WaitEvent(target, Event(event)))

    buffers = {buffer.name: buffer for buffer in (*read.buffers, *write.buffers)}
    return Session.of(
        name,
        tuple(buffers.values()),
        kernels("before", False, True),
        edge("computed", COMPUTE, STREAM),
        Phase("read", read.steps, read.step),
        kernels("between", True, True),
        edge("changed", COMPUTE, write_stream),
        Phase("write", write.steps, write.step),
        edge("written", write_stream, COMPUTE),
        kernels("after", True, False),
    )
