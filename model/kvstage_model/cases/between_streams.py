"""Work on two streams that share rows on the device, without an event between them."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, Launch, Operation, RecordEvent, SyncStream, WaitEvent
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row


def stored_before_computed(steps: Steps) -> Scheme:
    """A store stream copies a block that the forward was asked to write; the host takes scheduled for done."""
    cache, host = device("cache", steps), pinned("host blocks", steps)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache, i),))
        yield Copy("store", row(cache, i), row(host, i))

    return Scheme("stored before computed", (cache, host), steps, step, epilogue=(SyncStream("store"),))


def stored_after_computed(steps: Steps) -> Scheme:
    """The store stream waits for an event that the compute stream records after the forward."""
    cache, host = device("cache", steps), pinned("host blocks", steps)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache, i),))
        yield RecordEvent(Event("computed"), "compute")
        yield WaitEvent("store", Event("computed"), aim=i)
        yield Copy("store", row(cache, i), row(host, i))

    return Scheme("stored after computed", (cache, host), steps, step, epilogue=(SyncStream("store"),))


H40 = Case(
    "H40",
    "Blocks are offloaded before they are computed",
    ("vllm-project/vllm#31341", "vllm-project/vllm#45704", "vllm-project/vllm#46278"),
    ("scheduler", "compute stream", "store stream"),
    Edge.COMPUTE_WRITE_STORE_READ,
    "the kernel that writes a block must end before the store reads it",
    stored_before_computed,
    (Fix("the store stream waits for an event of the compute stream", stored_after_computed),),
)


def loaded_under_zeroing(steps: Steps) -> Scheme:
    """A block is cleared for its new owner on the compute stream, and filled by a load on another."""
    cache, host = device("cache", steps), pinned("host blocks", steps)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache, i),))
        yield Copy("load", row(host, i), row(cache, i))

    return Scheme("loaded under zeroing", (cache, host), steps, step, epilogue=(SyncStream("load"),))


def loaded_after_zeroing(steps: Steps) -> Scheme:
    """The load stream waits for the compute stream."""
    cache, host = device("cache", steps), pinned("host blocks", steps)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache, i),))
        yield RecordEvent(Event("cleared"), "compute")
        yield WaitEvent("load", Event("cleared"), aim=i)
        yield Copy("load", row(host, i), row(cache, i))

    return Scheme("loaded after zeroing", (cache, host), steps, step, epilogue=(SyncStream("load"),))


H47 = Case(
    "H47",
    "A late zeroing wipes a block that was loaded",
    ("vllm-project/vllm#50696", "vllm-project/vllm#45357"),
    ("compute stream", "load stream"),
    Edge.COMPUTE_READ_LOAD_WRITE,
    "the kernel that clears a block must end before the load writes it",
    loaded_under_zeroing,
    (Fix("the load stream waits for the compute stream", loaded_after_zeroing),),
)


def one_reader_forgets(layers: Steps) -> Scheme:
    """Rows of a layer are loaded; attention waits for them, and the indexer does not."""
    cache, host, scores = device("cache", layers), pinned("host rows", layers), device("scores")

    def step(i: int) -> Iterator[Operation]:
        yield Copy("load", row(host, i), row(cache, i))
        yield RecordEvent(Event("loaded", i), "load")
        yield Launch("compute", reads=(row(cache, i),), writes=(row(scores),))
        yield WaitEvent("compute", Event("loaded", i), aim=i)
        yield Launch("compute", reads=(row(cache, i), row(scores)))

    return Scheme("one reader forgets", (cache, host, scores), layers, step)


def every_reader_waits(layers: Steps) -> Scheme:
    """The wait stands before the first reader of the layer."""
    cache, host, scores = device("cache", layers), pinned("host rows", layers), device("scores")

    def step(i: int) -> Iterator[Operation]:
        yield WaitEvent("load", Event("read", i), aim=i)
        yield Copy("load", row(host, i), row(cache, i))
        yield RecordEvent(Event("loaded", i), "load")
        yield WaitEvent("compute", Event("loaded", i), aim=i)
        yield Launch("compute", reads=(row(cache, i),), writes=(row(scores),))
        yield Launch("compute", reads=(row(cache, i), row(scores)))
        yield RecordEvent(Event("read", i), "compute")

    return Scheme("every reader waits", (cache, host, scores), layers, step)


H50 = Case(
    "H50",
    "The indexer reads a layer before it is loaded",
    ("sgl-project/sglang#22811", "sgl-project/sglang#39893"),
    ("load stream", "compute stream"),
    Edge.LOAD_WRITE_COMPUTE_READ,
    "the load of a layer must end before any of its readers begins, and they before the next load",
    one_reader_forgets,
    (Fix("each reader waits for its layer, and the load for the readers", every_reader_waits),),
)

CASES = (H40, H47, H50)
