"""The device of worker threads: asynchronous, in order, and honest about errors."""

import gc
import threading
import traceback
from itertools import pairwise

import numpy as np
import pytest
import torch
from broken import early_wait, edited, late_wait, unedited, without_wait
from plain import plain_read, plain_write, random_blocks, random_rows, same

from kvstage import ClosedError, DeviceError, PagedPool, Stager, ThreadDevice
from kvstage_model.operations import Memory

SECONDS = 20
"""How long a test waits for a thread before it calls it hung."""


def everything(_stream: str, _index: int) -> bool:
    return True


def ones(count: int = 4) -> np.ndarray:
    return np.ones((1, count), np.uint8)


def zeros(count: int = 4) -> np.ndarray:
    return np.zeros((1, count), np.uint8)


def test_a_held_copy_has_not_happened_and_the_host_goes_on():
    with ThreadDevice() as device:
        first, second = zeros(), zeros()
        with device.hold(lambda _stream, index: index == 0) as held:
            device.copy("a", ones(), first)
            device.copy("b", ones(), second)
            device.synchronize("b")
            assert (first.sum(), second.sum()) == (0, 4)
            held.release()
            device.copy("b", zeros(), second)  # nothing is held any more
            device.synchronize("a")
            device.synchronize("b")
            assert (first.sum(), second.sum()) == (4, 0)
        assert (device.copies, device.waits) == (3, 3)


def test_what_stands_behind_a_held_copy_waits_with_it():
    with ThreadDevice() as device:
        first, second = zeros(), zeros()
        with device.hold(lambda _stream, index: index == 0):
            device.copy("a", ones(), first)
            device.copy("a", first, second)
            assert second.sum() == 0
        device.synchronize("a")
        assert second.sum() == 4


def test_a_wait_lets_go_of_its_own_stream_only():
    with ThreadDevice() as device:
        first, second = zeros(), zeros()
        with device.hold(everything):
            device.copy("a", ones(), first)
            device.copy("b", ones(), second)
            device.synchronize("a")
            assert (first.sum(), second.sum()) == (4, 0)


def test_a_stream_is_in_order_and_a_wait_covers_it_all():
    with ThreadDevice() as device:
        chain = [ones(), *(zeros() for _ in range(500))]
        for source, target in pairwise(chain):
            device.copy("a", source, target)
        device.synchronize("a")
        assert chain[-1].sum() == 4
        large = np.ones((1, 1 << 25), np.uint8), np.zeros((1, 1 << 25), np.uint8)
        device.copy("a", *large)
        device.synchronize("a")
        assert large[1].all()


def test_one_hold_at_a_time():
    with ThreadDevice() as device, device.hold(everything), pytest.raises(DeviceError, match="held already"):
        device.hold(everything).__enter__()


def test_an_error_comes_at_the_next_wait_with_its_traceback_and_what_is_behind_is_skipped():
    with ThreadDevice() as device:
        behind, later = zeros(), zeros()
        with device.hold(everything):
            device.copy("a", ones(3), zeros(4))
            device.copy("a", ones(), behind)
            with pytest.raises(ValueError, match="could not broadcast") as caught:
                device.synchronize("a")
        assert "target[...] = source" in "".join(traceback.format_exception(caught.value))
        assert behind.sum() == 0
        device.copy("a", ones(), later)
        device.synchronize("a")
        assert later.sum() == 4


def test_an_error_that_nobody_waited_for_comes_at_close():
    device = ThreadDevice()
    device.copy("a", ones(3), zeros(4))
    with pytest.raises(ValueError, match="could not broadcast"):
        device.close()
    device.close()


def test_close_finishes_the_work_and_ends_the_threads():
    before = set(threading.enumerate())
    device, target = ThreadDevice(), zeros()
    with device.hold(everything):
        device.copy("a", ones(), target)
        started = set(threading.enumerate()) - before
        device.close()
    assert len(started) == 1
    assert target.sum() == 4
    assert not any(thread.is_alive() for thread in started)
    with pytest.raises(ClosedError):
        device.copy("a", ones(), target)
    with pytest.raises(ClosedError):
        device.synchronize("a")
    with pytest.raises(ClosedError):
        device.allocate(Memory.PINNED, 4)


def test_a_device_that_is_dropped_leaves_no_thread():
    before = set(threading.enumerate())
    device = ThreadDevice()
    device.copy("a", ones(), zeros())
    (worker,) = set(threading.enumerate()) - before
    del device
    gc.collect()
    worker.join(SECONDS)
    assert not worker.is_alive()


def test_a_wait_for_a_stream_without_work_returns(device):
    device.synchronize("never used")


def test_only_host_tensors():
    with ThreadDevice() as device:
        tensor = torch.zeros(1, 2, 3, dtype=torch.uint8, device="meta")
        with pytest.raises(DeviceError, match="meta"):
            device.view(Memory.DEVICE, tensor)
        assert device.view(Memory.DEVICE, torch.zeros(1, 2, 3, dtype=torch.uint8)).shape == (1, 2, 3)


def transferred(edit, direction: str, name: str, *, hold: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What a call has written when it returns, and what it must be, where copies are held back as long as nobody waits."""
    blocks, table = random_blocks(1, 5, 4, (3,), torch.bfloat16), [3, 0, 4]
    rows, out = random_rows(2, 9, (3,), torch.bfloat16), random_rows(3, 9, (3,), torch.bfloat16)
    pool = PagedPool(blocks.tensor)
    read, written = plain_read(blocks.tensor, table, 2, 11), plain_write(blocks, table, 2, rows)
    with ThreadDevice() as device:
        stager = Stager(device, scheme=edited(name, edit))
        with device.hold(lambda _stream, _index: hold):
            if direction == "read":
                stager.read(pool, table, 2, 11, out=out)
            else:
                stager.write(pool, table, 2, rows)
            return (out, read) if direction == "read" else (blocks.memory(), written)


@pytest.mark.parametrize("name", ["per_row", "per_block"])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_held_copies_show_every_missing_or_misplaced_wait(name, direction):
    assert same(*transferred(unedited, direction, name, hold=True))
    assert same(*transferred(unedited, direction, name, hold=False))
    assert not same(*transferred(without_wait, direction, name, hold=True))
    assert not same(*transferred(early_wait, direction, name, hold=True))
    assert same(*transferred(late_wait, direction, name, hold=True)) == (direction == "write")
