"""The host reads, or writes, memory that a copy from the device may still write."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, HostCopy, HostRead, HostWrite, Launch, Operation, RecordEvent, SyncEvent, SyncStream
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row

EDGE = Edge.DOWNLOAD_WRITE_HOST_READ


def read_in_the_next_step(steps: Steps) -> Scheme:
    """A counter is copied to the host, and read in the next step: nothing waits any more since steps are scheduled ahead."""
    counter, host = device("counter"), pinned("counter at the host")

    def step(i: int) -> Iterator[Operation]:
        yield HostRead(row(host))
        yield Launch("compute", writes=(row(counter),))
        yield Copy("compute", row(counter), row(host))

    return Scheme("read in the next step", (counter, host), steps, step)


def read_after_its_event(steps: Steps) -> Scheme:
    """An event after the copy, and a wait for it before the read."""
    counter, host = device("counter"), pinned("counter at the host")

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("counted"), aim=i - 1)
        yield HostRead(row(host))
        yield Launch("compute", writes=(row(counter),))
        yield Copy("compute", row(counter), row(host))
        yield RecordEvent(Event("counted"), "compute")

    return Scheme("read after its event", (counter, host), steps, step)


H31 = Case(
    "H31",
    "A count is read before its copy has ended",
    ("vllm-project/vllm#36013",),
    ("host", "compute stream"),
    EDGE,
    "the copy of step n must end before the host reads the count in step n + 1",
    read_in_the_next_step,
    (Fix("an event after the copy, waited for before the read", read_after_its_event),),
)


def into_the_live_array(steps: Steps) -> Scheme:
    """The copy goes into the array whose rows the host moves about while it is under way."""
    state, live = device("state"), pinned("live rows")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(state),))
        yield Copy("compute", row(state), row(live))
        yield RecordEvent(Event("copied"), "compute")
        yield HostWrite(row(live))
        yield SyncEvent(Event("copied"), aim=i)
        yield HostRead(row(live))

    return Scheme("into the live array", (state, live), steps, step)


def into_a_private_array(steps: Steps) -> Scheme:
    """The copy has a target of its own, taken over after the wait."""
    state, private, live = device("state"), pinned("private rows"), pinned("live rows")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(state),))
        yield Copy("compute", row(state), row(private))
        yield RecordEvent(Event("copied"), "compute")
        yield HostWrite(row(live))
        yield SyncEvent(Event("copied"), aim=i)
        yield HostCopy(row(private), row(live))

    return Scheme("into a private array", (state, private, live), steps, step)


H33 = Case(
    "H33",
    "Rows are condensed while a copy writes them",
    ("vllm-project/vllm#51599", "vllm-project/vllm#51571"),
    ("host", "compute stream"),
    EDGE,
    "the copy must end before the host writes the rows that it writes; the later wait comes too late",
    into_the_live_array,
    (Fix("a private target, taken over after the wait", into_a_private_array),),
)


def saved_while_computing(saves: Steps) -> Scheme:
    """A session's state is saved while kernels still write it; the next load is overwritten by them."""
    cache, saved = device("cache"), pinned("saved state")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache),))
        yield Copy("session", row(cache), row(saved))
        yield SyncStream("session")
        yield HostRead(row(saved))

    return Scheme("saved while computing", (cache, saved), saves, step)


def saved_after_a_synchronize(saves: Steps) -> Scheme:
    """The host waits for the compute stream at the boundary of the interface."""
    cache, saved = device("cache"), pinned("saved state")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("compute", writes=(row(cache),))
        yield SyncStream("compute")
        yield Copy("session", row(cache), row(saved))
        yield SyncStream("session")
        yield HostRead(row(saved))

    return Scheme("saved after a synchronize", (cache, saved), saves, step)


H39 = Case(
    "H39",
    "A session is saved while it is computed",
    ("ggml-org/llama.cpp#6911",),
    ("host", "compute stream", "session stream"),
    Edge.COMPUTE_WRITE_STORE_READ,
    "the kernels must end before the state is copied, in either direction",
    saved_while_computing,
    (Fix("synchronize before state is read or set", saved_after_a_synchronize),),
)

CASES = (H31, H33, H39)
