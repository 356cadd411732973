"""Memory that is dropped and handed out again: what is right by the rules of an allocator passes, and each twin is found."""

import numpy as np
import pytest
import torch

from kvstage import CheckedDevice, ReleasedMemoryError, StagingError
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import IssueOrder, Schedule

LAYERS, WIDTH = 3, 4
ROWS = torch.arange(1, 1 + LAYERS * WIDTH, dtype=torch.uint8).view(LAYERS, WIDTH)


def offload(device: CheckedDevice, told: str) -> list[list[int]]:
    """Each layer's weights come on one stream into memory of its own, are used on another, and dropped."""
    weights, outputs = device.host_view(ROWS.clone(), Memory.PINNED), device.allocate(Memory.DEVICE, ROWS.numel()).view(ROWS.shape)
    fetched, used = device.event(), device.event()
    for layer in range(LAYERS):
        weight = device.allocate(Memory.DEVICE, WIDTH)
        device.copy("offload", weights[layer], weight)
        device.record(fetched, "offload")
        device.wait_event("compute", fetched)
        device.copy("compute", weight, outputs[layer])
        device.record(used, "compute")
        if told == "recorded":
            device.record_stream(weight, "compute")
        if told == "before the drop":
            device.wait_event("offload", used)
        del weight
        if told == "after the drop":
            device.wait_event("offload", used)
    device.synchronize("compute")
    return outputs.tolist()


def outcome(schedule: Schedule, told: str, allocator: str) -> type[StagingError] | list[list[int]]:
    try:
        with CheckedDevice(schedule, allocator=allocator) as device:
            return offload(device, told)
    except StagingError as error:
        return type(error)


@pytest.mark.parametrize(
    ("told", "allocator"),
    [("before the drop", "driver"), ("after the drop", "driver"), ("before the drop", "torch"), ("recorded", "torch")],
)
def test_device_memory_goes_back_in_the_order_of_its_stream(told: str, allocator: str) -> None:
    outcomes = [found for _, found in delays(lambda schedule: outcome(schedule, told, allocator))]
    assert len(outcomes) > 10
    assert all(found == ROWS.tolist() for found in outcomes)


@pytest.mark.parametrize(("told", "allocator"), [("", "driver"), ("", "torch"), ("recorded", "driver")])
def test_a_stream_that_nobody_waits_for_still_uses_it(told: str, allocator: str) -> None:
    assert outcome(IssueOrder(), told, allocator) is ReleasedMemoryError


def test_the_message_has_a_wait_of_the_stream() -> None:
    with pytest.raises(ReleasedMemoryError) as found, CheckedDevice(IssueOrder()) as device:
        offload(device, "")
    assert 'device.wait_event("offload", event)' in str(found.value)
    assert "freed:   " in str(found.value)
    assert "del weight" in str(found.value)


def test_memory_that_is_not_handed_out_again_is_left_alone() -> None:
    with CheckedDevice(IssueOrder()) as device:
        rows, out = device.host_view(torch.ones(4), Memory.PINNED), device.allocate(Memory.DEVICE, 16).view(torch.float32)
        temporary = device.allocate(Memory.DEVICE, 16).view(torch.float32)
        device.copy("one", rows, temporary)
        event = device.event()
        device.record(event, "one")
        device.wait_event("two", event)
        device.copy("two", temporary, out)
        del temporary
        device.copy("three", rows, device.allocate(Memory.DEVICE, 16).view(torch.float32))  # another stream's
        device.synchronize("three")


def fresh(device: CheckedDevice, kernel: bool) -> None:
    """A new pinned tensor for each call: what vLLM and TensorRT-LLM came to."""
    table = device.allocate(Memory.DEVICE, WIDTH)
    for layer in range(LAYERS):
        pinned = device.allocate(Memory.PINNED, WIDTH)
        pinned[:] = ROWS[layer]
        if kernel:
            device.gather("exec", pinned.view(1, 1, WIDTH), np.array([0]), table.view(1, WIDTH))
        else:
            device.copy("exec", pinned, table)
        del pinned
    device.synchronize("exec")
    assert table.tolist() == ROWS[-1].tolist()


def tried(schedule: Schedule, allocator: str, kernel: bool) -> type[StagingError] | None:
    try:
        with CheckedDevice(schedule, allocator=allocator) as device:
            fresh(device, kernel)
    except StagingError as error:
        return type(error)
    except AssertionError as error:  # the loop's own, where bytes were wrong: what was found is a note of it
        return ReleasedMemoryError if "memory that has been released" in "".join(error.__notes__) else None
    return None


def test_pinned_memory_of_torchs_waits_for_its_copies() -> None:
    assert [found for _, found in delays(lambda schedule: tried(schedule, "torch", False))] == [None] * (2 + 2 * LAYERS)


@pytest.mark.parametrize(("allocator", "kernel"), [("driver", False), ("torch", True)])
def test_no_other_does_and_of_kernels_it_is_not_told(allocator: str, kernel: bool) -> None:
    assert tried(IssueOrder(), allocator, kernel) is ReleasedMemoryError


def test_there_are_two_kinds_of_rules() -> None:
    with pytest.raises(ValueError, match="it must be 'driver' or 'torch'"):
        CheckedDevice(IssueOrder(), allocator="cuda")
