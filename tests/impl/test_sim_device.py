"""The simulated device: the library under every schedule, and its mistakes found."""

import numpy as np
import pytest
import torch
from broken import early_wait, edited, late_wait, unedited, without_wait
from plain import plain_read, plain_write, random_blocks, random_rows, same

from kvstage import ClosedError, DeviceError, PagedPool, SimDevice, Stager
from kvstage.sim_device import UNWRITTEN
from kvstage_model.axioms import Moment
from kvstage_model.operations import Memory
from kvstage_model.schedules import Hold, IssueOrder, Schedule, delays, exhaustive

NAMES = ["per_row", "per_block"]
CASES = [(1, 0, 3), (2, 1, 4), (2, 0, 4), (3, 2, 7), (4, 1, 3)]
"""Block size, start and stop."""


def read_right(scheme, schedule: Schedule, size: int, start: int, stop: int) -> bool:
    """Whether a read under a schedule gives the rows of the definition."""
    blocks, table = random_blocks(1, 5, size, (3,), torch.bfloat16), [3, 0, 4]
    out = random_rows(2, stop - start, (3,), torch.bfloat16)
    before, returned = blocks.memory(), out.clone()
    with SimDevice(schedule) as device:
        Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), table, start, stop, out=out)
        device.host(lambda: returned.copy_(out), "the caller takes the rows")
    assert torch.equal(blocks.base, before)
    return same(returned, plain_read(blocks.tensor, table, start, stop))


def write_right(scheme, schedule: Schedule, size: int, start: int, stop: int) -> bool:
    """Whether the pool holds what the definition says when a write has returned, and later."""
    blocks, table = random_blocks(1, 5, size, (3,), torch.bfloat16), [3, 0, 4]
    rows = random_rows(2, stop - start, (3,), torch.bfloat16)
    after, returned = plain_write(blocks, table, start, rows), blocks.memory()
    with SimDevice(schedule) as device:
        Stager(device, scheme=scheme).write(PagedPool(blocks.tensor), table, start, rows)
        device.host(lambda: returned.copy_(blocks.base), "the caller looks at the pool")
    return same(returned, after) and same(blocks.base, after)


RIGHT = {"read": read_right, "write": write_right}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("case", CASES)
def test_right_under_every_delay(name, direction, case):
    results = list(delays(lambda schedule: RIGHT[direction](name, schedule, *case)))
    assert len(results) > 2
    assert all(right for _, right in results)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
def test_right_under_every_schedule_of_a_small_call(name, direction):
    results = list(exhaustive(lambda schedule: RIGHT[direction](name, schedule, 2, 1, 4)))
    assert results
    assert all(right for _, right in results)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("edit", [without_wait, early_wait, late_wait])
def test_some_delay_shows_each_mistake_and_issue_order_shows_none(name, direction, edit):
    scheme = edited(name, edit)
    results = list(delays(lambda schedule: RIGHT[direction](scheme, schedule, 2, 1, 4)))
    wrong = [schedule for schedule, right in results if not right]
    assert RIGHT[direction](edited(name, unedited), IssueOrder(), 2, 1, 4)
    harmless = edit is late_wait and direction == "write"
    assert bool(wrong) == (not harmless)
    assert RIGHT[direction](scheme, IssueOrder(), 2, 1, 4), "where nothing is late, no mistake shows"


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
