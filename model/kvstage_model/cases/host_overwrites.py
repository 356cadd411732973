"""The host fills a staging buffer again while a copy or a kernel may still read what was there before."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, HostWrite, Launch, Operation, RecordEvent, SyncEvent, SyncStream
from ..language.ranges import Flags
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row

EDGE = Edge.UPLOAD_READ_HOST_WRITE


def one_table(steps: Steps) -> Scheme:
    """One pinned table, refilled in each iteration."""
    table, there, out = pinned("table"), device("table on the device"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(table))
        yield Copy("execution", row(table), row(there))
        yield Launch("execution", reads=(row(there),), writes=(row(out),))

    return Scheme("one table", (table, there, out), steps, step)


def fresh_table(steps: Steps) -> Scheme:
    """A pinned table of its own for each iteration, kept until its copy has ended."""
    tables, there, out = pinned("tables", steps), device("table on the device"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(tables, i))
        yield Copy("execution", row(tables, i), row(there))
        yield Launch("execution", reads=(row(there),), writes=(row(out),))

    return Scheme("fresh table", (tables, there, out), steps, step, epilogue=(SyncStream("execution"),))


def table_with_an_event(steps: Steps) -> Scheme:
    """One pinned table, and a wait for its last copy before it is refilled."""
    table, there, out = pinned("table"), device("table on the device"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("sent"), aim=i - 1)
        yield HostWrite(row(table))
        yield Copy("execution", row(table), row(there))
        yield RecordEvent(Event("sent"), "execution")
        yield Launch("execution", reads=(row(there),), writes=(row(out),))

    return Scheme("table with an event", (table, there, out), steps, step)


H01 = Case(
    "H01",
    "Attention reads another batch's block table",
    ("NVIDIA/TensorRT-LLM#15546", "NVIDIA/TensorRT-LLM#16088"),
    ("host", "execution stream"),
    EDGE,
    "the copy of iteration n must end before the host fills the table for iteration n + 1",
    one_table,
    (
        Fix("a fresh pinned buffer for each iteration", fresh_table),
        Fix("an event, waited for before the refill", table_with_an_event),
    ),
)


def zero_copy(steps: Steps) -> Scheme:
    """A kernel reads the host's offsets when it runs, and the host rewrites them for the next iteration."""
    offsets, out = pinned("offsets"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(offsets))
        yield Launch("execution", reads=(row(offsets),), writes=(row(out),))

    return Scheme("zero copy", (offsets, out), steps, step)


def zero_copy_of_snapshots(steps: Steps) -> Scheme:
    """Each iteration's offsets are a snapshot of their own, kept until its kernel has ended."""
    offsets, out = pinned("snapshots", steps), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(offsets, i))
        yield Launch("execution", reads=(row(offsets, i),), writes=(row(out),))

    return Scheme("zero copy of snapshots", (offsets, out), steps, step, epilogue=(SyncStream("execution"),))


H02 = Case(
    "H02",
    "A gather kernel reads host offsets while they are rewritten",
    ("NVIDIA/TensorRT-LLM#16088", "NVIDIA/TensorRT-LLM#15607"),
    ("host", "execution stream"),
    EDGE,
    "the kernel that reads the host's memory must end before the host writes it again",
    zero_copy,
    (Fix("a snapshot for each launch, kept while it is in flight", zero_copy_of_snapshots),),
)


def no_fence(steps: Steps) -> Scheme:
    """Two pinned inputs, refilled in each step without a wait."""
    sampling, tokens = pinned("sampling"), pinned("tokens")
    there, also = device("sampling on the device"), device("tokens on the device")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(sampling))
        yield Copy("compute", row(sampling), row(there))
        yield HostWrite(row(tokens))
        yield Copy("compute", row(tokens), row(also))

    return Scheme("no fence", (sampling, tokens, there, also), steps, step)


def narrow_fence(steps: Steps) -> Scheme:
    """The wait stands before the second input, and the first one is written before it."""
    sampling, tokens = pinned("sampling"), pinned("tokens")
    there, also = device("sampling on the device"), device("tokens on the device")

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(row(sampling))
        yield Copy("compute", row(sampling), row(there))
        yield SyncEvent(Event("prepared"), aim=i - 1)
        yield HostWrite(row(tokens))
        yield Copy("compute", row(tokens), row(also))
        yield RecordEvent(Event("prepared"), "compute")

    return Scheme("narrow fence", (sampling, tokens, there, also), steps, step)


def wide_fence(steps: Steps) -> Scheme:
    """The wait stands before all writes of the step."""
    sampling, tokens = pinned("sampling"), pinned("tokens")
    there, also = device("sampling on the device"), device("tokens on the device")

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("prepared"), aim=i - 1)
        yield HostWrite(row(sampling))
        yield Copy("compute", row(sampling), row(there))
        yield HostWrite(row(tokens))
        yield Copy("compute", row(tokens), row(also))
        yield RecordEvent(Event("prepared"), "compute")

    return Scheme("wide fence", (sampling, tokens, there, also), steps, step)


H04 = Case(
    "H04",
    "The fence around input preparation is narrower than the writes",
    ("vllm-project/vllm#24527", "vllm-project/vllm#25279"),
    ("host", "compute stream"),
    EDGE,
    "every copy of step n must end before the host writes its source in step n + 1",
    no_fence,
    (Fix("a fence around some of the writes", narrow_fence, incomplete=True), Fix("a fence around all of them", wide_fence)),
)


def fenced_for_some_kinds(steps: Steps, prefill: Flags) -> Scheme:
    """The host waits before the steps of one kind only."""
    buffer, there = pinned("buffer"), device("mirror")

    def step(i: int) -> Iterator[Operation]:
        if prefill(i) == 1:
            yield SyncStream("compute")
        yield HostWrite(row(buffer))
        yield Copy("compute", row(buffer), row(there))
        yield Launch("compute", reads=(row(there),))

    return Scheme("fenced for some kinds", (buffer, there), steps, step)


def fenced_always(steps: Steps) -> Scheme:
    """The host waits before each forward."""
    buffer, there = pinned("buffer"), device("mirror")

    def step(i: int) -> Iterator[Operation]:
        yield SyncStream("compute")
        yield HostWrite(row(buffer))
        yield Copy("compute", row(buffer), row(there))
        yield Launch("compute", reads=(row(there),))

    return Scheme("fenced always", (buffer, there), steps, step)


H10 = Case(
    "H10",
    "A fence before prefill steps leaves decode steps without one",
    ("ROCm/ATOM#1784",),
    ("host", "compute stream"),
    EDGE,
    "the copy of any step must end before the host writes its source again, whatever kind the next step is",
    fenced_for_some_kinds,
    (Fix("a host fence before every forward", fenced_always),),
)


def copied_after_the_record(steps: Steps) -> Scheme:
    """The event of the step is recorded, and then the metadata is copied."""
    metadata, there = pinned("metadata"), device("metadata on the device")

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("step"), aim=i - 1)
        yield HostWrite(row(metadata))
        yield RecordEvent(Event("step"), "compute")
        yield Copy("compute", row(metadata), row(there))

    return Scheme("copied after the record", (metadata, there), steps, step)


def copied_before_the_record(steps: Steps) -> Scheme:
    """The metadata is copied, and then the event is recorded."""
    metadata, there = pinned("metadata"), device("metadata on the device")

    def step(i: int) -> Iterator[Operation]:
        yield SyncEvent(Event("step"), aim=i - 1)
        yield HostWrite(row(metadata))
        yield Copy("compute", row(metadata), row(there))
        yield RecordEvent(Event("step"), "compute")

    return Scheme("copied before the record", (metadata, there), steps, step)


H13 = Case(
    "H13",
    "A copy moved after the record that was to cover it",
    ("vllm-project/vllm-ascend#13726",),
    ("host", "compute stream"),
    EDGE,
    "an event marks what was issued before its record, and the copy is issued after it",
    copied_after_the_record,
    (Fix("the copy before the record", copied_before_the_record),),
)


CASES = (H01, H02, H04, H10, H13)
