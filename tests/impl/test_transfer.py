"""The handle on rows that are on their way."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
import torch

from kvstage import ClosedError, NotFinishedError, PagedPool, Stager, Stats, ThreadDevice
from kvstage.devices.left_behind import LeftBehind
from kvstage.runtime.pending import Pending
from kvstage.runtime.runtime import Runtime
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

AT_ONCE = ["direct", "gather_pinned", "gather_copy"]
INSIDE = ["per_row", "per_block", "ring", "gather"]
TABLE = [3, 0, 4]
SHORT = 0.01
"""Seconds after which a wait for something that is held back gives up."""
LONG = 20.0
"""Seconds within which what isn't held back has arrived, or the test has hung."""


def everything(_stream: str, _index: int) -> bool:
    return True


@pytest.fixture
def transfer(device):
    return Stager(device, scheme="per_block").read(PagedPool(torch.ones(2, 4, 3)), [1], 0, 4)


def test_no_result_before_somebody_asked(transfer):
    with pytest.raises(NotFinishedError, match=r"wait\(\)"):
        transfer.result()
    transfer.wait()
    assert transfer.result().tolist() == [[1.0] * 3] * 4


def test_a_query_will_do(transfer):
    assert transfer.query()
    assert transfer.result().shape == (4, 3)


def test_stats(transfer):
    assert transfer.stats == Stats(copies=1, waits=1, bytes=48)
    assert transfer.stats + Stats(1, 2, 3, 4) == Stats(2, 3, 51, 4)


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_a_read_returns_at_once_and_its_rows_come_later(scheme):
    blocks, out = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 9, (3,), torch.bfloat16)
    kept = out.clone()
    with ThreadDevice() as device, device.hold(everything):
        transfer = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), TABLE, 2, 11, out=out)
        assert not transfer.query()
        assert same(out, kept)
        with pytest.raises(NotFinishedError):
            transfer.result()
        with pytest.raises(TimeoutError, match=f"{SHORT} seconds"):
            transfer.wait(timeout=SHORT)
        with pytest.raises(NotFinishedError):
            transfer.result()
        assert (transfer.stats.waits, device.waits) == (0, 0)
        transfer.wait()
        assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 2, 11))
        transfer.wait()
        assert (transfer.stats.waits, device.waits) == (1, 1), "the second wait has nothing to wait for"


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_a_write_returns_at_once_and_its_rows_come_later(scheme):
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 9, (3,), torch.bfloat16)
    before, after = blocks.memory(), plain_write(blocks, TABLE, 2, rows)
    with ThreadDevice() as device, device.hold(everything):
        transfer = Stager(device, scheme=scheme).write(PagedPool(blocks.tensor), TABLE, 2, rows)
        assert not transfer.query()
        assert torch.equal(blocks.base, before)
        transfer.wait()
        assert transfer.result() is None
        assert torch.equal(blocks.base, after)


@pytest.mark.parametrize("scheme", AT_ONCE)
@pytest.mark.parametrize("waited", [True, False])
def test_polling_ends_and_makes_no_wait_of_the_device(scheme, waited):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device:
        with device.hold(everything) as held:
            transfer = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), TABLE, 2, 11)
            threading.Timer(SHORT, held.release).start()
            if waited:
                transfer.wait(timeout=LONG)
            else:
                while not transfer.query():
                    pass
        assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 2, 11))
        assert (device.waits, transfer.stats.waits) == (0, int(waited))


@pytest.mark.parametrize("scheme", INSIDE)
def test_the_other_schemes_finish_inside_the_call(scheme):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device, device.hold(everything):
        transfer = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), TABLE, 2, 11)
        waits = device.waits
        assert transfer.query()
        transfer.wait(timeout=0)
        assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 2, 11))
        assert device.waits == waits == transfer.stats.waits


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_several_under_way_arrive_in_any_order_of_waiting(scheme):
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 6, (3,), torch.bfloat16)
    with ThreadDevice() as device, device.hold(everything):
        stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)
        first = plain_read(blocks.tensor, TABLE, 0, 12)
        after = plain_write(blocks, TABLE, 3, rows)
        reads = [stager.read(pool, TABLE, 0, 12)]
        write = stager.write(pool, TABLE, 3, rows)
        reads.append(stager.read(pool, TABLE, 3, 9))
        for transfer in (reads[1], write, reads[0]):
            transfer.wait()
        assert same(reads[0].result(), first)
        assert same(reads[1].result(), rows)
        assert torch.equal(blocks.base, after)


class Forgetful(ThreadDevice):
    """Works on addresses, as an accelerator does: what it has queued keeps no memory alive."""

    def view(self, memory, tensor):
        assert tensor.is_contiguous()
        data = (ctypes.c_uint8 * tensor.numel()).from_address(tensor.data_ptr())
        return np.frombuffer(data, np.uint8).reshape(tensor.shape)


def dropped(monkeypatch, scheme: str, keeps: bool) -> tuple[bool, bool, bool]:
    """Whether the memory of a dropped transfer lives while its work is held, after the next call, and after `close`."""
    if not keeps:
        mark = Pending.mark
        monkeypatch.setattr(Pending, "mark", lambda self, *memory: mark(self))
    out = np.zeros((8, 3), np.float32)
    alive = weakref.ref(out)
    with Forgetful() as device:
        stager = Stager(device, scheme=scheme)
        with device.hold(lambda _stream, index: keeps) as held:
            stager.read(PagedPool(torch.ones(3, 4, 3)), [2, 0], 0, 8, out=torch.from_numpy(out))
            del out
            gc.collect()
            while_held = alive() is not None
            held.release()
            other = stager.read(PagedPool(torch.ones(3, 4, 3)), [1], 0, 4)
            other.wait()
            stager.read(PagedPool(torch.ones(3, 4, 3)), [1], 0, 4).wait()
            gc.collect()
            after_calls = alive() is not None
        stager.close()
    return while_held, after_calls, alive() is not None


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_a_dropped_transfer_keeps_its_memory_until_its_work_has_ended(monkeypatch, scheme):
    assert dropped(monkeypatch, scheme, keeps=True) == (True, False, False)


def test_twin_without_the_stager_the_memory_of_a_dropped_transfer_is_gone(monkeypatch):
    """Nothing is held here, and the memory may be gone before the copy: so it copies nothing that anybody looks at."""
    monkeypatch.setattr(Forgetful, "copy", lambda self, stream, source, target: None)
    assert dropped(monkeypatch, "direct", keeps=False) == (False, False, False)


def stager_dropped(monkeypatch, watch, scheme: str, waited: bool, keeps: bool = True) -> tuple[bool, bool]:
    """Whether a transfer's memory lives when its stager was dropped, and the transfer; and when the device is gone as well."""
    if not keeps:
        monkeypatch.setattr(LeftBehind, "add", lambda *_: None)
    out = np.zeros((8, 3), np.float32)
    alive = weakref.ref(out)
    with Forgetful() as device, device.hold(lambda _stream, index: keeps):
        stager = Stager(device, scheme=scheme)
        transfer = stager.read(PagedPool(torch.ones(3, 4, 3)), [2, 0], 0, 8, out=torch.from_numpy(out))
        del stager
        if waited:
            transfer.wait()
        del out, transfer
        gc.collect()
        dropped = alive() is not None
        device.synchronize("kvstage copy")
    watch._recorders.clear()  # they hold the device
    del device
    gc.collect()
    return dropped, alive() is not None


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_the_device_keeps_what_a_dropped_stager_has_under_way(monkeypatch, watch, scheme):
    assert stager_dropped(monkeypatch, watch, scheme, waited=False) == (True, False)
    assert stager_dropped(monkeypatch, watch, scheme, waited=True) == (False, False), "nothing is kept that nobody touches"


def test_twin_without_that_its_memory_is_gone_before_the_copy(monkeypatch, watch):
    monkeypatch.setattr(Forgetful, "copy", lambda self, stream, source, target: None)
    assert stager_dropped(monkeypatch, watch, "direct", waited=False, keeps=False) == (False, False)


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_close_waits_for_what_was_dropped_and_refuses_what_comes_then(scheme):
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 9, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, 2, rows)
    with ThreadDevice() as device, device.hold(everything):
        with Stager(device, scheme=scheme) as stager:
            stager.write(PagedPool(blocks.tensor), TABLE, 2, rows)
            assert not same(blocks.base, after)
        assert same(blocks.base, after)
        stager.close()
        assert device.waits == 1
        with pytest.raises(ClosedError, match="stager is closed"):
            stager.read(PagedPool(blocks.tensor), TABLE, 2, 11)


def test_a_device_that_is_closed_has_finished_what_was_under_way():
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme="direct")
        transfer = stager.read(PagedPool(blocks.tensor), TABLE, 2, 11)
    transfer.wait()
    stager.close()
    assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 2, 11))


class Failing(ThreadDevice):
    """Its first copy fails when its turn comes."""

    def copy(self, stream, source, target):
        super().copy(stream, source, target if self.copies else target[:, :1])


def test_what_goes_wrong_is_raised_by_the_wait_and_there_is_no_result():
    pool = PagedPool(torch.ones(3, 4, 3))
    with Failing() as device:
        stager = Stager(device, scheme="direct")
        transfer = stager.read(pool, [2, 0], 0, 8)
        for _ in range(2):
            with pytest.raises(ValueError, match="could not broadcast"):
                transfer.wait()
        with pytest.raises(ValueError, match="could not broadcast"):
            transfer.query()
        with pytest.raises(ValueError, match="could not broadcast"):
            transfer.result()
        again = stager.read(pool, [2, 0], 0, 8)  # and nobody else is told
        again.wait()
        assert same(again.result(), torch.ones(8, 3))
        stager.close()


def test_the_failure_of_a_dropped_transfer_is_raised_by_the_next_call_and_only_there():
    pool = PagedPool(torch.ones(3, 4, 3))
    with Failing() as device:
        stager = Stager(device, scheme="direct")
        stager.read(pool, [2, 0], 0, 8)
        device._workers["kvstage copy"].mark(0).block()
        with pytest.raises(ValueError, match="could not broadcast"):
            stager.read(pool, [2, 0], 0, 8)
        read = stager.read(pool, [2, 0], 0, 8)
        read.wait()
        assert same(read.result(), torch.ones(8, 3))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_call_that_breaks_off_keeps_its_memory_until_the_next(monkeypatch, keeps):
    class Interrupted(Forgetful):
        def copy(self, stream, source, target):
            if self.copies == 1:
                self.copies += 1
                raise KeyboardInterrupt
            super().copy(stream, source, target)

    if not keeps:
        monkeypatch.setattr(Runtime, "_break_off", lambda *_: None)
    pool = PagedPool(torch.ones(3, 4, 3))
    with Interrupted() as device:
        stager, out = Stager(device, scheme="direct"), np.zeros((8, 3), np.float32)
        alive = weakref.ref(out)
        with pytest.raises(KeyboardInterrupt):
            stager.read(pool, [2, 0], 0, 8, out=torch.from_numpy(out))
        device.synchronize("kvstage copy")
        del out
        gc.collect()
        assert (alive() is not None) == keeps
        stager.read(pool, [2, 0], 0, 8).wait()
        gc.collect()
        assert alive() is None
