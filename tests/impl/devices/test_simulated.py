"""The simulated device itself: halves, events, polling, and its end."""

from functools import partial

import numpy as np
import pytest
import torch

from kvstage import ClosedError, DeviceError, SimDevice
from kvstage.devices.simulated import UNWRITTEN
from kvstage_model.language.buffers import Memory
from kvstage_model.ordering.axioms import Moment
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import Hold, HoldPair, IssueOrder, Schedule
from kvstage_model.simulation.machine import PATIENCE


def test_a_copy_moves_half_when_it_begins_and_half_when_it_ends():
    source, target = np.arange(1, 7, dtype=np.uint8).reshape(2, 3), np.zeros((2, 3), np.uint8)
    device = SimDevice(Hold(0, 1))
    device.copy("a", source, target)
    device.host_copy(np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8))
    assert target.tolist() == [[1, 2, 3], [0, 0, 0]]
    device.synchronize("a")
    assert target.tolist() == source.tolist()
    assert (device.copies, device.waits) == (1, 1)
    wait = ("synchronize", Moment.BEGIN), ("synchronize", Moment.END)
    host = ("host copy", Moment.BEGIN), ("host copy", Moment.END)
    assert device.log == [("copy 0", Moment.BEGIN), *host, wait[0], ("copy 0", Moment.END), wait[1]]


def test_a_kernel_moves_half_of_each_row_when_it_begins_and_half_when_it_ends():
    pool, packed = np.arange(1, 25, dtype=np.uint8).reshape(2, 3, 4), np.zeros((2, 4), np.uint8)
    device = SimDevice(Hold(0, 1))
    device.gather("a", pool, np.array([4, 0]), packed)
    device.host_copy(np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8))
    assert packed.tolist() == [[17, 18, 0, 0], [1, 2, 0, 0]]
    device.synchronize("a")
    assert packed.tolist() == [[17, 18, 19, 20], [1, 2, 3, 4]]
    device, back = SimDevice(Hold(0, 1)), np.zeros((2, 3, 4), np.uint8)
    device.scatter("a", packed, back, np.array([1, 5]))
    device.host_copy(np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8))
    assert back.reshape(6, 4)[[1, 5]].tolist() == [[17, 18, 0, 0], [1, 2, 0, 0]]
    device.synchronize("a")
    assert back.reshape(6, 4).tolist() == [[0] * 4, [17, 18, 19, 20], [0] * 4, [0] * 4, [0] * 4, [1, 2, 3, 4]]
    assert (device.copies, device.launches, device.waits) == (0, 1, 1)


def test_events_of_the_simulated_device():
    first, second = np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8)
    device = SimDevice(Hold(0, 0))
    event, never = device.event(), device.event()
    assert device.query(never)
    device.wait(never)
    device.copy("a", np.ones((1, 1), np.uint8), first)
    device.record(event, "a")
    device.wait_event("b", event)
    device.copy("b", first, second)
    assert not device.query(event)
    device.wait(event)
    assert device.query(event)
    assert (first.sum(), device.waits) == (1, 2)
    device.synchronize("b")
    assert second.sum() == 1


def test_a_polling_loop_ends_under_a_schedule_that_holds_what_it_asks_for():
    target = np.zeros((1, 1), np.uint8)
    device = SimDevice(Hold(0, 0))
    event = device.event()
    device.copy("a", np.ones((1, 1), np.uint8), target)
    device.record(event, "a")
    asked = 1
    while not device.query(event):
        assert not target.any()
        asked += 1
    assert asked == PATIENCE
    assert target.all()


def test_a_polling_loop_that_does_something_itself_ends_too() -> None:
    target, own = np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8)
    device = SimDevice(Hold(0, 0))
    event = device.event()
    device.copy("a", np.ones((1, 1), np.uint8), target)
    device.record(event, "a")
    asked = 1
    while not device.query(event):
        device.host_copy(np.ones((1, 1), np.uint8), own)
        asked += 1
    assert asked == PATIENCE


def test_patience_begins_anew_when_something_has_moved():
    target, other = np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8)
    device = SimDevice(Hold(0, 0))
    event = device.event()
    device.copy("a", np.ones((1, 1), np.uint8), target)
    device.record(event, "a")
    for _ in range(PATIENCE - 1):
        assert not device.query(event)
    device.copy("b", np.ones((1, 1), np.uint8), other)
    device.synchronize("b")
    for _ in range(PATIENCE - 1):
        assert not device.query(event)
    assert device.query(event)


def test_close_lets_everything_end():
    target = np.zeros((1, 1), np.uint8)
    with SimDevice(Hold(0, 0)) as device:
        device.copy("a", np.ones((1, 1), np.uint8), target)
        assert not target.any()
    assert target.all()
    for call in (
        lambda: device.copy("a", target, target),
        lambda: device.synchronize("a"),
        lambda: device.allocate(Memory.PINNED, 1),
    ):
        with pytest.raises(ClosedError):
            call()


def test_new_memory_is_marked():
    assert SimDevice(IssueOrder()).allocate(Memory.PINNED, 3).tolist() == [UNWRITTEN] * 3


def test_only_host_tensors():
    with pytest.raises(DeviceError, match="meta"):
        SimDevice(IssueOrder()).view(Memory.DEVICE, torch.zeros(1, 1, 1, dtype=torch.uint8, device="meta"))


def uploads(schedule: Schedule, *, asks: bool) -> str:
    """Three copies on streams of their own, the first two of which are asked for; what the host was told."""
    machine, asked = SimDevice(schedule), [object(), object(), object()]
    rows = np.zeros((3, 2), np.uint8)
    for number in range(3):
        machine.copy(f"s{number}", rows[number, :1], rows[number, 1:])
        machine.record(asked[number], f"s{number}")
    told = "".join("no"[machine.query(asked[number])] for number in (0, 2)) if asks else ""
    machine.close()
    return told


def test_two_copies_are_held_back_at_once_where_the_host_asks() -> None:
    pairs = {str(s): told for s, told in delays(partial(uploads, asks=True)) if isinstance(s, HoldPair)}
    assert pairs == {
        "hold copies 0 and 1 before their ends": "no",
        "hold copies 1 and 2 before their ends": "on",
        "hold copies 0 and 2 before their ends": "nn",
    }
    assert not any(isinstance(s, HoldPair) for s, _ in delays(partial(uploads, asks=False))), "its program is always the same"


def test_pairs_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvstage_model.schedules.drivers.MOST_PAIRS", 2)
    pairs = [s for s, _ in delays(partial(uploads, asks=True)) if isinstance(s, HoldPair)]
    assert pairs == [HoldPair(0, 1), HoldPair(1, 2)], "the nearest ones"
