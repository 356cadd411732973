"""The host, or a disk, fills a staging slot again while the copy out of it may still be under way."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, HostWrite, Launch, Operation, RecordEvent, SyncEvent, SyncStream
from ..language.ranges import Positive
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row

EDGE = Edge.UPLOAD_READ_HOST_WRITE


def one_list_of_ids(steps: Steps) -> Scheme:
    """A kernel clears the blocks that a list names; the list goes through one pinned slot."""
    ids, there, cache = pinned("ids"), device("ids on the device"), device("cache", steps)

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(ids))
        yield Copy("compute", row(ids), row(there))
        yield Launch("compute", reads=(row(there),), writes=(row(cache, i),))

    return Scheme("one list of ids", (ids, there, cache), steps, step)


def ring_of_lists(steps: Steps, slots: Positive) -> Scheme:
    """The list goes through a ring of pinned slots, with an event each."""
    ids, there, cache = pinned("ids", slots), device("ids on the device"), device("cache", steps)

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("sent", i % slots), aim=i - slots)
        yield HostWrite(row(ids, i % slots))
        yield Copy("compute", row(ids, i % slots), row(there))
        yield RecordEvent(Event("sent", i % slots), "compute")
        yield Launch("compute", reads=(row(there),), writes=(row(cache, i),))

    return Scheme("ring of lists", (ids, there, cache), steps, step)


H06 = Case(
    "H06",
    "A zeroing kernel clears the blocks of another step",
    ("vllm-project/vllm#48085", "vllm-project/vllm#48399", "1CatAI/1Cat-vLLM#406"),
    ("host", "compute stream"),
    EDGE,
    "the copy of step n's list must end before the host writes the list of step n + 1",
    one_list_of_ids,
    (Fix("a ring of lists with an event each", ring_of_lists),),
)


def _loads(name: str, steps: int, slots: int, forgets: bool, drains: bool) -> Scheme:
    buffers, blocks = pinned("buffers", slots), device("blocks", steps)

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("loaded", i % slots), aim=i - slots)
        yield HostWrite(row(buffers, i % slots))
        yield Copy("load", row(buffers, i % slots), row(blocks, i))
        yield RecordEvent(Event("loaded", i % slots), "load")

    end = (SyncStream("load"),) if drains else ()
    return Scheme(name, (buffers, blocks), steps, step, epilogue=end, fresh_events=forgets)


def loads_forget_their_events(steps: Steps, slots: Positive) -> Scheme:
    """A call returns with copies under way, and the next call has events of its own."""
    return _loads("loads forget their events", steps, slots, True, False)


def loads_drain(steps: Steps, slots: Positive) -> Scheme:
    """A call waits for its copies before it returns."""
    return _loads("loads drain", steps, slots, True, True)


def loads_keep_their_events(steps: Steps, slots: Positive) -> Scheme:
    """The events live as long as the buffers."""
    return _loads("loads keep their events", steps, slots, False, False)


H07 = Case(
    "H07",
    "A disk backend's next batch overwrites buffers that are still being loaded from",
    ("vllm-project/vllm#51667",),
    ("load thread", "load stream", "disk"),
    EDGE,
    "the last copies of a call must end before the next call reads from disk into their buffers",
    loads_forget_their_events,
    (Fix("drain at the end of the loop", loads_drain), Fix("events that outlive the call", loads_keep_their_events)),
)


def keys_and_values_in_one_slot(steps: Steps) -> Scheme:
    """One staging slot for K and V of the same iteration; a wait at the end of it."""
    staging, keys, values = pinned("staging"), device("keys", steps), device("values", steps)

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(staging))
        yield Copy("upload", row(staging), row(keys, i))
        yield HostWrite(row(staging))
        yield Copy("upload", row(staging), row(values, i))
        yield SyncStream("upload")

    return Scheme("keys and values in one slot", (staging, keys, values), steps, step)


def keys_and_values_apart(steps: Steps) -> Scheme:
    """A slot for each, both filled before either is copied."""
    staging, keys, values = pinned("staging", 2), device("keys", steps), device("values", steps)

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(staging, 0))
        yield HostWrite(row(staging, 1))
        yield Copy("upload", row(staging, 0), row(keys, i))
        yield Copy("upload", row(staging, 1), row(values, i))
        yield SyncStream("upload")

    return Scheme("keys and values apart", (staging, keys, values), steps, step)


H15 = Case(
    "H15",
    "The K cache receives V bytes",
    ("1bit-MONSTER/1bit-MONSTER#2344", "1bit-MONSTER/1bit-MONSTER#2436"),
    ("host", "upload stream"),
    EDGE,
    "the copy of K must end before the host fills the slot with V",
    keys_and_values_in_one_slot,
    (Fix("two slots, both filled before either copy", keys_and_values_apart),),
)

CASES = (H06, H07, H15)
