"""What every device must do, on all of them: late where it may be, in order, and never later than a wait allows."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from kvstage import ClosedError, DeviceError
from kvstage_model.language.buffers import Memory
from tests.support.devices import LATE, ones, zeros


@pytest.fixture(params=LATE)
def late(request):
    with LATE[request.param]() as device:
        yield device


def test_work_has_not_happened_when_it_is_issued_and_has_when_the_stream_was_waited_for(late):
    target = zeros(late)
    late.copy("a", ones(late).handle, target.handle)
    assert target.sum == 0
    late.synchronize("a")
    assert target.sum == 4
    assert (late.copies, late.waits) == (1, 1)


def test_twin_without_the_wait_the_host_reads_what_was_there_before(late):
    target, taken = zeros(late), zeros(late)
    late.copy("a", ones(late).handle, target.handle)
    late.host_copy(target.handle, taken.handle)
    late.synchronize("a")
    assert (target.sum, taken.sum) == (4, 0)


def test_a_stream_is_in_order_and_a_wait_covers_it_all(late):
    chain = [ones(late), *(zeros(late) for _ in range(100))]
    for source, target in pairwise(chain):
        late.copy("a", source.handle, target.handle)
    late.synchronize("a")
    assert chain[-1].sum == 4


def test_a_wait_for_a_stream_without_work_returns(late):
    before = late.waits
    late.synchronize("never used")
    assert late.waits == before + 1


def test_an_event_waits_for_its_last_record(late):
    first, second, event = zeros(late), zeros(late), late.event()
    for target in (first, second):
        late.copy("a", ones(late).handle, target.handle)
        late.record(event, "a")
    assert not late.query(event)
    late.wait(event)
    assert late.query(event)
    assert (first.sum, second.sum) == (4, 4)


def test_an_event_that_was_never_recorded_holds_nobody_up(late):
    target, event = zeros(late), late.event()
    assert late.query(event)
    late.wait(event)
    late.wait_event("a", event)
    late.copy("a", ones(late).handle, target.handle)
    late.synchronize("a")
    assert target.sum == 4
    assert late.waits == 2


def test_a_chain_of_streams_waits_link_by_link(late):
    chain = [ones(late), *(zeros(late) for _ in range(4))]
    for k, (source, target) in enumerate(pairwise(chain)):
        event = late.event()
        late.copy(f"{k}", source.handle, target.handle)
        late.record(event, f"{k}")
        late.wait_event(f"{k + 1}", event)
    late.copy("4", ones(late).handle, zeros(late).handle)
    late.synchronize("4")
    assert [cells.sum for cells in chain] == [4] * 5


@pytest.mark.parametrize("rows", [[4, 5, 1], [0, 1, 2, 3, 4, 5], [5], [2, 3, 0, 1], [1, 2], [3, 3, 4]])
@pytest.mark.parametrize("padding", [0, 3])
def test_kernels_are_asynchronous_and_move_each_row_to_its_place(late, rows, padding):
    base = torch.arange(3 * (8 + padding), dtype=torch.uint8).view(3, 8 + padding)
    pool, index = base[:, :8].unflatten(1, (2, 4)), np.array(rows)
    packed, target = torch.zeros(1, len(rows) + 2, 4, dtype=torch.uint8), torch.zeros_like(base)
    back = target[:, :8].unflatten(1, (2, 4))
    place = late.view(Memory.PINNED, packed)[0, 1 : 1 + len(rows)]
    late.gather("a", late.view(Memory.DEVICE, pool), index, place)
    late.scatter("a", place, late.view(Memory.DEVICE, back), index)
    assert (packed.sum(), back.sum()) == (0, 0)
    late.synchronize("a")
    expected = torch.stack([pool[row // 2, row % 2] for row in rows])
    assert torch.equal(packed[0, 1:-1], expected)
    assert not packed[0, [0, -1]].any(), "nothing beside the rows is written"
    for row in range(6):
        assert torch.equal(back[row // 2, row % 2], pool[row // 2, row % 2] if row in rows else torch.zeros(4, dtype=torch.uint8))
    assert not target[:, 8:].any(), "the padding between blocks is not written"
    assert (late.copies, late.launches, late.waits) == (0, 2, 1)


def test_runs_of_a_slot_are_copied_and_nothing_beside_them(late):
    pool, packed = torch.arange(24, dtype=torch.uint8).view(3, 2, 4), torch.zeros(1, 5, 4, dtype=torch.uint8)
    source, target = late.view(Memory.DEVICE, pool), late.view(Memory.PINNED, packed)
    late.copy("a", source[2, 0:2], target[0, 1:3])
    late.copy("a", source[0, 1:2], target[0, 3:4])
    late.synchronize("a")
    assert packed[0].tolist() == [[0] * 4, *pool[2].tolist(), pool[0, 1].tolist(), [0] * 4]


def test_no_rows_are_moved_like_others_in_their_turn(late):
    pool, packed = torch.ones(3, 2, 4, dtype=torch.uint8), torch.zeros(1, 5, 4, dtype=torch.uint8)
    source, target = late.view(Memory.DEVICE, pool), late.view(Memory.PINNED, packed)
    none = np.empty(0, np.int64)
    late.copy("a", source[1, 0:0], target[0, 2:2])
    late.gather("a", source, none, target[0, 2:2])
    late.scatter("a", target[0, 2:2], source, none)
    late.copy("a", source[1, 0:1], target[0, 2:3])
    late.synchronize("a")
    assert packed[0].sum(dim=1).tolist() == [0, 0, 4, 0, 0]
    assert pool.all()
    assert (late.copies, late.launches) == (2, 2)


@pytest.mark.parametrize("name", LATE)
def test_memory_is_the_hosts_whatever_torchs_default_device_is(name):
    with LATE[name]() as device, torch.device("meta"):
        tensor = device.allocate(Memory.PINNED, 8)
        assert tensor.device.type == "cpu"
        handle = device.view(Memory.PINNED, tensor.view(1, 2, 4))
        device.copy("a", handle[0, 0:1], handle[0, 1:2])


def test_only_host_tensors(late):
    tensor = torch.zeros(1, 2, 3, dtype=torch.uint8, device="meta")
    with pytest.raises(DeviceError, match="meta"):
        late.view(Memory.DEVICE, tensor)


@pytest.mark.parametrize("name", LATE)
def test_close_finishes_the_work_and_refuses_more(name):
    with LATE[name]() as device:
        source, target = ones(device), zeros(device)
        device.copy("a", source.handle, target.handle)
        device.close()
        assert target.sum == 4
        device.close()
        for call in (
            lambda: device.copy("a", source.handle, target.handle),
            lambda: device.synchronize("a"),
            lambda: device.allocate(Memory.PINNED, 4),
        ):
            with pytest.raises(ClosedError):
                call()
