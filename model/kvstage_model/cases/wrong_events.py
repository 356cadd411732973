"""Work on two streams that share rows on the device, and an event on the wrong stream, under the wrong name, or none."""

from collections.abc import Iterator

from ..language.operations import Copy, Event, Launch, Operation, RecordEvent, SyncStream, WaitEvent
from ..language.ranges import Positive
from ..language.scheme import Scheme
from .case import Case, Edge, Fix
from .rows import Steps, device, pinned, row


def tables_under_the_forward(steps: Steps) -> Scheme:
    """A scheduling stream writes index tables that the forward before still reads."""
    tables, out = device("index tables"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("schedule", writes=(row(tables),))
        yield RecordEvent(Event("scheduled"), "schedule")
        yield WaitEvent("forward", Event("scheduled"), aim=i)
        yield Launch("forward", reads=(row(tables),), writes=(row(out),))

    return Scheme("tables under the forward", (tables, out), steps, step)


def tables_after_the_forward(steps: Steps) -> Scheme:
    """The scheduling stream waits for the forward at the top of the loop."""
    tables, out = device("index tables"), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield WaitEvent("schedule", Event("forwarded"), aim=i - 1)
        yield Launch("schedule", writes=(row(tables),))
        yield RecordEvent(Event("scheduled"), "schedule")
        yield WaitEvent("forward", Event("scheduled"), aim=i)
        yield Launch("forward", reads=(row(tables),), writes=(row(out),))
        yield RecordEvent(Event("forwarded"), "forward")

    return Scheme("tables after the forward", (tables, out), steps, step)


H61 = Case(
    "H61",
    "The next schedule overwrites tables that the forward reads",
    ("sgl-project/sglang#26380", "sgl-project/sglang#24954"),
    ("schedule stream", "forward stream"),
    Edge.COMPUTE_READ_LOAD_WRITE,
    "the forward must end before the tables that it reads are written again",
    tables_under_the_forward,
    (Fix("the schedule stream waits for the forward before it writes", tables_after_the_forward),),
)


def transfers_without_events(transfers: Steps, slots: Positive) -> Scheme:
    """Blocks are offloaded and onboarded through the same slots on two streams."""
    primary, secondary = device("primary blocks", slots), pinned("secondary blocks", slots)

    def step(i: int) -> Iterator[Operation]:
        yield Copy("offload", row(primary, i % slots), row(secondary, i % slots))
        yield Copy("onboard", row(secondary, i % slots), row(primary, i % slots))

    return Scheme("transfers without events", (primary, secondary), transfers, step)


def transfers_with_events_of_slots(transfers: Steps, slots: Positive) -> Scheme:
    """A transfer waits for those that read or write its slots; each records an event of its slot."""
    primary, secondary = device("primary blocks", slots), pinned("secondary blocks", slots)

    def step(i: int) -> Iterator[Operation]:
        yield WaitEvent("offload", Event("onboarded", i % slots), aim=i - slots)
        yield Copy("offload", row(primary, i % slots), row(secondary, i % slots))
        yield RecordEvent(Event("offloaded", i % slots), "offload")
        yield WaitEvent("onboard", Event("offloaded", i % slots), aim=i)
        yield Copy("onboard", row(secondary, i % slots), row(primary, i % slots))
        yield RecordEvent(Event("onboarded", i % slots), "onboard")

    return Scheme("transfers with events of slots", (primary, secondary), transfers, step)


H54 = Case(
    "H54",
    "Two transfers of one slot, with events kept by another name",
    ("NVIDIA/TensorRT-LLM#9056", "NVIDIA/TensorRT-LLM#15272", "NVIDIA/TensorRT-LLM#8813"),
    ("offload stream", "onboard stream"),
    Edge.TRANSFER_TRANSFER,
    "a transfer must end before another one uses its slot, whatever the blocks are called",
    transfers_without_events,
    (Fix("events of reads and writes for each slot", transfers_with_events_of_slots),),
)


def waits_for_itself(steps: Steps) -> Scheme:
    """The current stream is asked for inside the copy stream's context: record and wait are both on the copy stream."""
    weights, host, out = device("weights"), pinned("host weights", steps), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield RecordEvent(Event("computed"), "copy")
        yield WaitEvent("copy", Event("computed"), aim=i)
        yield Copy("copy", row(host, i), row(weights))
        yield RecordEvent(Event("copied"), "copy")
        yield WaitEvent("compute", Event("copied"), aim=i)
        yield Launch("compute", reads=(row(weights),), writes=(row(out),))

    return Scheme("waits for itself", (weights, host, out), steps, step)


def waits_for_compute(steps: Steps) -> Scheme:
    """The compute stream is asked for outside the context."""
    weights, host, out = device("weights"), pinned("host weights", steps), device("output")

    def step(i: int) -> Iterator[Operation]:
        yield RecordEvent(Event("computed"), "compute")
        yield WaitEvent("copy", Event("computed"), aim=i)
        yield Copy("copy", row(host, i), row(weights))
        yield RecordEvent(Event("copied"), "copy")
        yield WaitEvent("compute", Event("copied"), aim=i)
        yield Launch("compute", reads=(row(weights),), writes=(row(out),))

    return Scheme("waits for compute", (weights, host, out), steps, step)


H67 = Case(
    "H67",
    "A stream waits for itself",
    ("huggingface/diffusers#12721", "pytorch/torchtitan#2581"),
    ("copy stream", "compute stream"),
    Edge.COMPUTE_READ_LOAD_WRITE,
    "the kernel that reads the weights must end before they are overwritten; a wait on one's own stream orders nothing",
    waits_for_itself,
    (Fix("ask for the current stream before the context is entered", waits_for_compute),),
)


def waits_on_the_default_stream(steps: Steps) -> Scheme:
    """Gradients are produced on the forward's stream, and the reduction waits for the default stream."""
    gradients, reduced = device("gradients"), device("reduced")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("forward", writes=(row(gradients),))
        yield RecordEvent(Event("produced"), "default")
        yield WaitEvent("reduce", Event("produced"), aim=i)
        yield Launch("reduce", reads=(row(gradients),), writes=(row(reduced),))
        yield SyncStream("reduce")

    return Scheme("waits on the default stream", (gradients, reduced), steps, step)


def waits_on_the_producers_stream(steps: Steps) -> Scheme:
    """The event is recorded on the stream that produced them."""
    gradients, reduced = device("gradients"), device("reduced")

    def step(i: int) -> Iterator[Operation]:
        yield Launch("forward", writes=(row(gradients),))
        yield RecordEvent(Event("produced"), "forward")
        yield WaitEvent("reduce", Event("produced"), aim=i)
        yield Launch("reduce", reads=(row(gradients),), writes=(row(reduced),))
        yield SyncStream("reduce")

    return Scheme("waits on the producer's stream", (gradients, reduced), steps, step)


H80 = Case(
    "H80",
    "The reduction waits for the wrong stream",
    ("deepspeedai/DeepSpeed#7898", "huggingface/trl#7195"),
    ("forward stream", "default stream", "reduce stream"),
    Edge.COMPUTE_WRITE_STORE_READ,
    "the kernel that produces gradients must end before they are reduced; the default stream never had it",
    waits_on_the_default_stream,
    (Fix("record on the stream that produced them", waits_on_the_producers_stream),),
)

CASES = (H54, H61, H67, H80)
