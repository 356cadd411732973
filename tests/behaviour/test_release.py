"""Giving memory back: release, cancel and its quarantine, and the hook that is told of each end."""

import gc
from contextlib import suppress

import pytest
import torch

from kvstage import CancelledError, Moved, NotFinishedError, PagedPool, ReleasedError, Stager, Stats, ThreadDevice
from kvstage.runtime.memory_budget import Loan
from kvstage.transfer import Transfer
from kvstage_model.schemes.registry import LIBRARY
from tests.support.allocations import CountingDevice
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

AT_ONCE = ["direct", "gather_pinned", "gather_host", "gather_copy"]
SCHEMES = sorted(LIBRARY)
TABLE = [3, 0, 4]


def everything(_stream: str, _index: int) -> bool:
    return True


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_released_result_is_used_by_the_next_read(scheme):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)
        first = stager.read(pool, TABLE, 0, 8)
        first.wait()
        place = first.result().data_ptr()
        first.release()
        first.release()
        with pytest.raises(ReleasedError, match="copy what you keep"):
            first.result()
        second = stager.read(pool, TABLE, 4, 12)
        second.wait()
        assert second.result().data_ptr() == place
        assert same(second.result(), plain_read(blocks.tensor, TABLE, 4, 12))


def test_a_result_that_is_not_released_stays_the_callers():
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme="direct"), PagedPool(blocks.tensor)
        first = stager.read(pool, TABLE, 0, 8)
        first.wait()
        kept = first.result()
        del first
        gc.collect()
        second = stager.read(pool, TABLE, 4, 12)
        second.wait()
        assert same(kept, plain_read(blocks.tensor, TABLE, 0, 8))
        assert second.result().data_ptr() != kept.data_ptr()


def test_the_callers_own_out_stays_his():
    blocks, out = random_blocks(1, 5, 4, (3,), torch.bfloat16), torch.zeros(8, 3, dtype=torch.bfloat16)
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme="direct"), PagedPool(blocks.tensor)
        first = stager.read(pool, TABLE, 0, 8, out=out)
        first.wait()
        first.release()
        second = stager.read(pool, TABLE, 4, 12)
        second.wait()
        assert second.result().data_ptr() != out.data_ptr()
        assert same(out, plain_read(blocks.tensor, TABLE, 0, 8))


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_release_before_the_end_is_refused(scheme):
    with ThreadDevice() as device, device.hold(everything):
        read = Stager(device, scheme=scheme).read(PagedPool(torch.ones(5, 4, 3)), TABLE, 0, 8)
        with pytest.raises(NotFinishedError, match=r"cancel\(\)"):
            read.release()
        read.wait()
        read.release()


def gets_other_memory(quarantine: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a read behind a cancelled one, whose work is held, gets other memory than that."""
    if not quarantine:
        monkeypatch.setattr(Transfer, "once_free", lambda self, do: do())
    pool = PagedPool(torch.ones(5, 4, 3))
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme="direct")
        first = stager.read(pool, TABLE, 0, 8)
        first.cancel()
        second = stager.read(pool, TABLE, 4, 12)
        pending = stager._calls._under_way
        places = {each.work.memory[1].data_ptr() for each in pending}
        second.wait()
    return len(places) == 2


@pytest.mark.parametrize("quarantine", [True, False])
def test_the_memory_of_a_cancelled_transfer_is_not_used_before_its_work_ended(monkeypatch, quarantine):
    assert gets_other_memory(quarantine, monkeypatch) == quarantine


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_a_cancelled_read_gives_its_memory_back_when_its_work_has_ended(scheme):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with CountingDevice() as device:
        stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)
        with device.hold(everything):
            first = stager.read(pool, TABLE, 0, 8)
            first.cancel()
            first.cancel()
            assert not first.query()
            second = stager.read(pool, TABLE, 0, 8)
            first.wait()
            assert first.query()
            with pytest.raises(CancelledError, match="nobody's"):
                first.result()
            second.wait()
        allocated = len(device.allocated)
        third = stager.read(pool, TABLE, 4, 12)
        third.wait()
        assert len(device.allocated) == allocated
        assert same(second.result(), plain_read(blocks.tensor, TABLE, 0, 8))
        assert same(third.result(), plain_read(blocks.tensor, TABLE, 4, 12))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cancel_after_the_end_is_a_release(scheme):
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme=scheme), PagedPool(torch.ones(5, 4, 3))
        first = stager.read(pool, TABLE, 0, 8)
        first.wait()
        place = first.result().data_ptr()
        first.cancel()
        with pytest.raises(CancelledError):
            first.result()
        second = stager.read(pool, TABLE, 0, 8)
        second.wait()
        assert second.result().data_ptr() == place


def test_a_cancelled_write_lands_all_the_same_where_it_was_issued():
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 6, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, 3, rows)
    with ThreadDevice() as device, device.hold(everything):
        write = Stager(device, scheme="direct").write(PagedPool(blocks.tensor), TABLE, 3, rows)
        write.cancel()
        write.wait()
        assert same(blocks.base, after)
        with pytest.raises(CancelledError):
            write.result()


def test_a_loan_goes_back_once():
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme="direct"), PagedPool(torch.ones(5, 4, 3))
        read = stager.read(pool, TABLE, 0, 8)
        read.wait()
        (loan,) = read._loans
        assert isinstance(loan, Loan)
        for _ in range(3):
            read.release()
            read.cancel()
        assert [len(kept) for kept in stager._calls._buffers._kept.values()].count(1) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_hook_is_told_of_each_transfer_once_with_all_its_stats(scheme):
    told: list[Moved] = []
    pool, host = PagedPool(torch.ones(5, 4, 3), name="latent"), PagedPool(torch.zeros(5, 4, 3), name="host")
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme, on_transfer=told.append)
        transfers = [
            stager.read(pool, TABLE, 0, 8),
            stager.write(pool, TABLE, 2, torch.ones(3, 3)),
            stager.copy(pool, [1], host, [0]),
        ]
        for transfer in transfers:
            transfer.wait()
            assert transfer.query()
        stager.read(pool, TABLE, 4, 4)
        assert [(each.direction, each.pool, each.rows) for each in told] == [
            ("read", "latent", 8),
            ("write", "latent", 3),
            ("copy", "latent", 4),
        ]
        assert [each.stats for each in told] == [transfer.stats for transfer in transfers]
        assert sum((each.stats for each in told), Stats()).waits == device.waits
        assert {each.scheme for each in told} >= {"copy read"}
        assert not any(each.cancelled for each in told)


def test_the_hook_is_told_of_a_dropped_and_of_a_cancelled_transfer_by_a_later_call():
    told: list[Moved] = []
    pool = PagedPool(torch.ones(5, 4, 3))
    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=told.append)
        with device.hold(everything):
            stager.read(pool, TABLE, 0, 8)
            stager.read(pool, TABLE, 0, 9).cancel()
            assert not told
        device.synchronize("kvstage copy")
        stager.read(pool, TABLE, 0, 4)
        assert [(each.rows, each.cancelled, each.stats.waits) for each in told] == [(8, False, 0), (9, True, 0)]
        stager.close()
        assert [each.rows for each in told] == [8, 9, 4]


def test_a_hook_may_call_the_stager_and_what_it_raises_comes_out_where_the_end_is_seen():
    pool, seen = PagedPool(torch.ones(5, 4, 3)), []

    def hook(moved: Moved) -> None:
        seen.append(moved.rows)
        if moved.rows == 8:
            stager.read(pool, TABLE, 0, 3).wait()
        if moved.rows == 5:
            raise ZeroDivisionError

    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=hook)
        stager.read(pool, TABLE, 0, 8)
        device.synchronize("kvstage copy")
        stager.read(pool, TABLE, 0, 4).wait()
        assert seen == [8, 3, 4]
        failing = stager.read(pool, TABLE, 0, 5)
        with pytest.raises(ZeroDivisionError):
            failing.wait()
        failing.wait()
        assert failing.result().tolist() == [[1.0] * 3] * 5
        with suppress(ZeroDivisionError):
            stager.close()
        assert seen == [8, 3, 4, 5]
