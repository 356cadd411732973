"""The memory of a stager: used again, bounded, and never given out while a copy may touch it."""

import gc

import pytest
import torch

from kvstage import OpenCLDevice, PagedPool, PinnedMemoryError, Stager, ThreadDevice
from kvstage.runtime.memory_budget import Buffers
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.allocations import Allocations, CountingDevice
from tests.support.plain import plain_read, random_blocks, random_rows, same

TABLE = [3, 0, 4]


def everything(_stream: str, _index: int) -> bool:
    return True


def test_what_comes_back_is_given_out_again_the_smallest_that_fits():
    with CountingDevice() as device:
        buffers = Buffers(device, None)
        small, large = buffers.take(Memory.PINNED, 10), buffers.take(Memory.PINNED, 30)
        for loan in (large, small, small):
            loan.give_back()
        assert buffers.take(Memory.PINNED, 9).tensor is small.tensor
        assert buffers.take(Memory.PINNED, 9).tensor is large.tensor
        assert buffers.take(Memory.DEVICE, 9).tensor is not small.tensor
        assert device.allocated == [(Memory.PINNED, 10), (Memory.PINNED, 30), (Memory.DEVICE, 9)]


def test_a_history_that_grows_row_by_row_needs_new_memory_now_and_then_and_leaves_no_trail():
    with CountingDevice() as device:
        buffers = Buffers(device, None)
        for size in range(1, 4001):
            loan = buffers.take(Memory.PINNED, size, grows=True)
            assert size <= len(loan.tensor) <= size + max(1, size // 8)
            loan.give_back()
        del loan
        gc.collect()
        assert len(device.allocated) < 90
        assert buffers.pinned == device.allocated[-1][1]


def test_the_budget_says_what_was_asked_and_what_is_left():
    with CountingDevice() as device:
        buffers = Buffers(device, 100)
        held = buffers.take(Memory.PINNED, 70)
        with pytest.raises(PinnedMemoryError, match=r"31 bytes of pinned memory .* 30 of the budget of 100 are left") as refused:
            buffers.take(Memory.PINNED, 31)
        assert (refused.value.asked, refused.value.left) == (31, 30)
        assert isinstance(refused.value, MemoryError)
        assert len(buffers.take(Memory.PINNED, 29, grows=True).tensor) == 30, "rounded up no further than the budget goes"
        assert len(buffers.take(Memory.PAGEABLE, 500).tensor) == 500
        assert held.tensor is not None


def test_what_is_kept_makes_way_before_a_call_is_refused():
    with CountingDevice() as device:
        buffers = Buffers(device, 100)
        first, second = buffers.take(Memory.PINNED, 40), buffers.take(Memory.PINNED, 50)
        first.give_back()
        second.give_back()
        del first, second
        assert len(buffers.take(Memory.PINNED, 100).tensor) == 100
        assert buffers.pinned == 0, "and that is gone as well"


def test_a_result_that_nobody_releases_counts_until_its_last_view_is_gone():
    with CountingDevice() as device:
        buffers = Buffers(device, 100)
        view = buffers.take(Memory.PINNED, 80).tensor[3:5]
        gc.collect()
        assert buffers.pinned == 80
        del view
        gc.collect()
        assert buffers.pinned == 0


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
def test_a_steady_loop_allocates_nothing(scheme):
    """Reads of two sizes, writes, and copies; results released."""
    blocks, other = random_blocks(1, 6, 4, (3,), torch.bfloat16), random_blocks(2, 6, 4, (5,), torch.bfloat16)
    host = PagedPool(torch.zeros(3, 8, 3, dtype=torch.bfloat16))
    rows, pools = random_rows(3, 7, (3,), torch.bfloat16), (PagedPool(blocks.tensor), PagedPool(other.tensor))
    with CountingDevice() as device:
        stager = Stager(device, scheme=scheme)

        def step() -> None:
            with stager.batch() as batch:
                for pool in pools:
                    batch.read(pool, TABLE, 1, 11)
                batch.write(pools[0], TABLE, 2, rows)
                batch.copy(pools[0], [5, 1], host, [2])
            batch.wait()
            batch.release()

        step()
        step()
        once = len(device.allocated)
        with Allocations() as made:
            for _ in range(5):
                step()
        assert len(device.allocated) == once
        assert not made.counted


def test_twin_a_loop_that_does_not_release_allocates_each_time():
    pool = PagedPool(random_blocks(1, 6, 4, (3,), torch.bfloat16).tensor)
    with CountingDevice() as device:
        stager = Stager(device, scheme="per_block")
        stager.read(pool, TABLE, 1, 11).wait()
        with Allocations() as made:
            kept = [stager.read(pool, TABLE, 1, 11) for _ in range(3)]
        assert sum(made.counted.values()) == len(kept) == 3


@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_a_budget_for_two_results_refuses_the_third_until_one_is_released(scheme):
    blocks, copies = random_blocks(1, 6, 4, (4,), torch.bfloat16), 0
    pool, size = PagedPool(blocks.tensor), 8 * 4 * 2
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme=scheme, pinned_bytes=2 * size)
        reads = [stager.read(pool, TABLE, 0, 8) for _ in range(2)]
        copies = device.copies + device.launches
        with pytest.raises(PinnedMemoryError, match=f"{size} bytes .* 0 of the budget of {2 * size}"):
            stager.read(pool, TABLE, 0, 8)
        assert device.copies + device.launches == copies
        out = torch.zeros(8, 4, dtype=torch.bfloat16)
        mine = stager.read(pool, TABLE, 0, 8, out=out)
        mine.wait()
        assert same(out, plain_read(blocks.tensor, TABLE, 0, 8))
        reads[0].wait()
        reads[0].release()
        again = stager.read(pool, TABLE, 4, 12)
        for read, start in ((reads[1], 0), (again, 4)):
            read.wait()
            assert same(read.result(), plain_read(blocks.tensor, TABLE, start, start + 8))


@pytest.mark.parametrize("scheme", ["per_block", "ring", "gather"])
def test_staging_memory_is_under_the_budget_too(scheme):
    blocks = random_blocks(1, 6, 4, (4,), torch.bfloat16)
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme, pinned_bytes=7)
        with pytest.raises(PinnedMemoryError, match="of the budget of 7 are left"):
            stager.read(PagedPool(blocks.tensor), TABLE, 0, 8)
        assert device.copies == device.launches == 0


def test_a_call_that_runs_out_of_pinned_memory_leaves_the_stager_usable():
    blocks = random_blocks(1, 6, 4, (4,), torch.bfloat16)

    class Full(CountingDevice):
        def allocate(self, memory, size):
            if not self.allocated:
                self.allocated.append((memory, size))
                raise MemoryError("the driver has no more")
            return super().allocate(memory, size)

    with Full() as device:
        stager = Stager(device, scheme="direct", pinned_bytes=1000)
        with pytest.raises(MemoryError, match="the driver"):
            stager.read(PagedPool(blocks.tensor), TABLE, 0, 8)
        read = stager.read(PagedPool(blocks.tensor), TABLE, 0, 8)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, TABLE, 0, 8))
        assert stager._calls._buffers.pinned == len(read.result().untyped_storage())


@pytest.mark.parametrize("kind", [ThreadDevice, OpenCLDevice])
@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_a_device_that_has_nothing_more_to_do_keeps_no_memory_of_a_result_that_was_dropped(kind, scheme):
    pool = PagedPool(torch.ones(5, 4, 3))
    with kind() as device:
        stager = Stager(device, scheme=scheme, pinned_bytes=100)
        for _ in range(3):
            read = stager.read(pool, [3, 0], 0, 8)  # 96 bytes
            read.wait()
            assert read.result().eq(1).all()
            with pytest.raises(PinnedMemoryError):
                stager.read(pool, [3, 0], 0, 8)
            del read
            gc.collect()
