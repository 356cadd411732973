"""An allocator hands memory out in the order of one stream, and another stream still uses it, or writes it first."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, Launch, Operation, RecordEvent, SyncStream, WaitEvent
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row


def allocated_on_one_stream_used_on_another(saves: Steps) -> Scheme:
    """A staging tensor that work on the default stream still uses is handed out again, and first written on a pack stream."""
    memory, cache, host = device("allocated memory"), device("cache", saves), pinned("host rows", saves)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("default", reads=(row(memory),))
        yield Launch("pack", reads=(row(cache, i),), writes=(row(memory),))
        yield Copy("pack", row(memory), row(host, i))
        yield SyncStream("pack")

    return Scheme("allocated on one stream, used on another", (memory, cache, host), saves, step)


def used_on_its_own_stream(saves: Steps) -> Scheme:
    """The pack stream waits for what used the memory on the default stream."""
    memory, cache, host = device("allocated memory"), device("cache", saves), pinned("host rows", saves)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("default", reads=(row(memory),))
        yield RecordEvent(Event("used"), "default")
        yield WaitEvent("pack", Event("used"), aim=i)
        yield Launch("pack", reads=(row(cache, i),), writes=(row(memory),))
        yield Copy("pack", row(memory), row(host, i))
        yield SyncStream("pack")

    return Scheme("used on its own stream", (memory, cache, host), saves, step)


H62 = Case(
    "H62",
    "Memory is handed out in the order of one stream, and written on another",
    ("ROCm/ATOM#1956",),
    ("default stream", "pack stream", "caching allocator"),
    Edge.STREAM_REUSE,
    "what used the memory on its own stream must end before another stream writes it",
    allocated_on_one_stream_used_on_another,
    (Fix("allocate and first write on one stream, or wait for the other", used_on_its_own_stream),),
)


def freed_under_a_download(steps: Steps) -> Scheme:
    """Gradients are copied to the host on a side stream, freed at once, and their memory is used again on the main stream."""
    gradients, host = device("gradients"), pinned("gradients at the host", steps)

    def step(i: int) -> Iterator[Operation]:
        yield Launch("main", writes=(row(gradients),))
        yield RecordEvent(Event("reduced"), "main")
        yield WaitEvent("download", Event("reduced"), aim=i)
        yield Copy("download", row(gradients), row(host, i))

    return Scheme("freed under a download", (gradients, host), steps, step)


def kept_until_downloaded(steps: Steps) -> Scheme:
    """The main stream waits for the download before it uses the memory again."""
    gradients, host = device("gradients"), pinned("gradients at the host", steps)

    def step(i: int) -> Iterator[Operation]:
        yield WaitEvent("main", Event("downloaded"), aim=i - 1)
        yield Launch("main", writes=(row(gradients),))
        yield RecordEvent(Event("reduced"), "main")
        yield WaitEvent("download", Event("reduced"), aim=i)
        yield Copy("download", row(gradients), row(host, i))
        yield RecordEvent(Event("downloaded"), "download")

    return Scheme("kept until downloaded", (gradients, host), steps, step)


H64 = Case(
    "H64",
    "Gradients are overwritten while they are copied to the host",
    ("pytorch/pytorch#180665", "meta-pytorch/torchrec#4231", "deepspeedai/DeepSpeed#7965"),
    ("main stream", "download stream", "caching allocator"),
    Edge.STREAM_REUSE,
    "the copy on the side stream must end before the main stream writes the memory again",
    freed_under_a_download,
    (Fix("keep the tensor, with an event, until the copy has ended", kept_until_downloaded),),
)


CASES = (H62, H64)
