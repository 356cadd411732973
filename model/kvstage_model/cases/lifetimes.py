"""Memory goes to another user while a copy may still use it: a pool's slot, an allocator's block, a page of the cache."""

from collections.abc import Iterator

from ..language.operations import Acquire, Copy, Event, HostWrite, Launch, Operation, RecordEvent, Release, SyncEvent, SyncStream
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row

EDGE = Edge.UPLOAD_READ_RELEASE


def dropped_after_issue(requests: Steps) -> Scheme:
    """A request's pinned embedding goes back to its pool as soon as its copy was issued."""
    pool, there = pinned("pinned pool"), device("embeddings", requests)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(pool))
        yield HostWrite(row(pool))
        yield Copy("upload", row(pool), row(there, i))
        yield Release(row(pool))

    return Scheme("dropped after issue", (pool, there), requests, step)


def held_until_copied(requests: Steps) -> Scheme:
    """It goes back when the event after its copy has happened."""
    pool, there = pinned("pinned pool"), device("embeddings", requests)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(pool))
        yield HostWrite(row(pool))
        yield Copy("upload", row(pool), row(there, i))
        yield RecordEvent(Event("uploaded"), "upload")
        yield SyncEvent(Event("uploaded"), aim=i)
        yield Release(row(pool))

    return Scheme("held until copied", (pool, there), requests, step)


H18 = Case(
    "H18",
    "A pooled pinned source goes to another request while it is being copied",
    ("NVIDIA/TensorRT-LLM#19172", "NVIDIA/TensorRT-LLM#18488"),
    ("host", "upload stream", "pinned memory pool"),
    EDGE,
    "the copy must end before its source is free",
    dropped_after_issue,
    (Fix("a holder of source and event, released when the event has happened", held_until_copied),),
)


def temporary_for_each_chunk(chunks: Steps) -> Scheme:
    """Chunks are pinned into a temporary, copied by raw pointers, and the call returns; its temporary is free."""
    temporary, there = pinned("temporary", chunks), device("cache", chunks)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(temporary, i))
        yield HostWrite(row(temporary, i))
        yield Copy("scatter", row(temporary, i), row(there, i))
        yield Release(row(temporary, i))

    return Scheme("temporary for each chunk", (temporary, there), chunks, step)


def synchronized_before_return(chunks: Steps) -> Scheme:
    """The call waits for its stream before a temporary is free."""
    temporary, there = pinned("temporary", chunks), device("cache", chunks)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(temporary, i))
        yield HostWrite(row(temporary, i))
        yield Copy("scatter", row(temporary, i), row(there, i))
        yield SyncStream("scatter")
        yield Release(row(temporary, i))

    return Scheme("synchronized before return", (temporary, there), chunks, step)


H19 = Case(
    "H19",
    "Temporaries are freed under copies by raw pointers",
    ("LMCache/LMCache#4830",),
    ("host", "scatter stream", "pinned allocator"),
    EDGE,
    "the copies of a call must end before its temporaries are free",
    temporary_for_each_chunk,
    (Fix("synchronize before return, if the call pinned them itself", synchronized_before_return),),
)


def preempted_under_a_store(requests: Steps) -> Scheme:
    """A request is preempted while its store job is queued: its blocks have a new owner in the same step."""
    blocks, host = device("blocks", requests), pinned("host blocks", requests)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(blocks, i))
        yield Launch("compute", writes=(row(blocks, i),))
        yield SyncStream("compute")
        yield Copy("store", row(blocks, i), row(host, i))
        yield Release(row(blocks, i))

    return Scheme("preempted under a store", (blocks, host), requests, step)


def preempted_after_the_store(requests: Steps) -> Scheme:
    """The worker waits for the jobs of preempted requests before their blocks are written again."""
    blocks, host = device("blocks", requests), pinned("host blocks", requests)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(blocks, i))
        yield Launch("compute", writes=(row(blocks, i),))
        yield SyncStream("compute")
        yield Copy("store", row(blocks, i), row(host, i))
        yield SyncStream("store")
        yield Release(row(blocks, i))

    return Scheme("preempted after the store", (blocks, host), requests, step)


H72 = Case(
    "H72",
    "A preempted request's blocks are rewritten under its store",
    ("vllm-project/vllm#29870", "vllm-project/vllm#52360", "vllm-project/vllm#52470"),
    ("scheduler", "compute stream", "store stream", "block pool"),
    EDGE,
    "the store must end before its blocks have a new owner",
    preempted_under_a_store,
    (Fix("wait for the jobs of preempted requests before their blocks are overwritten", preempted_after_the_store),),
)


def evicted_under_a_load(pages: Steps) -> Scheme:
    """A load returns when it is enqueued; the host's page may be evicted, and written by another store."""
    host, blocks = pinned("host pages", pages), device("blocks", pages)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(host, i))
        yield Copy("load", row(host, i), row(blocks, i))
        yield RecordEvent(Event("loaded", i), "load")
        yield Release(row(host, i))
        yield SyncEvent(Event("loaded", i), aim=i)

    return Scheme("evicted under a load", (host, blocks), pages, step)


def locked_until_loaded(pages: Steps) -> Scheme:
    """The page is locked from before the load until its event has happened."""
    host, blocks = pinned("host pages", pages), device("blocks", pages)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(host, i))
        yield Copy("load", row(host, i), row(blocks, i))
        yield RecordEvent(Event("loaded", i), "load")
        yield SyncEvent(Event("loaded", i), aim=i)
        yield Release(row(host, i))

    return Scheme("locked until loaded", (host, blocks), pages, step)


H73 = Case(
    "H73",
    "A host page is evicted while it is loaded back",
    ("sgl-project/sglang#31427", "sgl-project/sglang#26728", "sgl-project/sglang#27444"),
    ("host", "load stream", "host page pool"),
    EDGE,
    "the load must end before its page may be evicted",
    evicted_under_a_load,
    (Fix("lock the page until the load's event has happened", locked_until_loaded),),
)


def published_before_the_copy_ended(blocks: Steps) -> Scheme:
    """A block is filled in part by a copy on the device, and its address is published for a remote write."""
    source, target = device("source", blocks), device("target", blocks)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(target, i))
        yield Copy("cache", row(source, i), row(target, i))
        yield RecordEvent(Event("copied", i), "cache")
        yield Release(row(target, i))

    return Scheme("published before the copy ended", (source, target), blocks, step)


def published_after_the_copy(blocks: Steps) -> Scheme:
    """The host waits for the copy's event before it publishes the address."""
    source, target = device("source", blocks), device("target", blocks)

    def step(i: int) -> Iterator[Operation]:
        yield Acquire(row(target, i))
        yield Copy("cache", row(source, i), row(target, i))
        yield RecordEvent(Event("copied", i), "cache")
        yield SyncEvent(Event("copied", i), aim=i)
        yield Release(row(target, i))

    return Scheme("published after the copy", (source, target), blocks, step)


H57 = Case(
    "H57",
    "Remote rows land in a block, and a queued copy overwrites them",
    ("NVIDIA/TensorRT-LLM#19444",),
    ("host", "cache stream", "network card"),
    EDGE,
    "the copy into a block must end before its address is published",
    published_before_the_copy_ended,
    (Fix("an event for each request, waited for before publishing", published_after_the_copy),),
)

CASES = (H18, H19, H57, H72, H73)
