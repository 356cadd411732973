"""The device of worker threads: asynchronous, in order, and honest about errors."""

import gc
import threading
import traceback
from itertools import pairwise

import numpy as np
import pytest
import torch

from kvstage import ClosedError, DeviceError, ThreadDevice
from kvstage_model.language.buffers import Memory

SECONDS = 20
"""How long a test waits for a thread before it calls it hung."""


def everything(_stream: str, _index: int) -> bool:
    return True


def ones(count: int = 4) -> np.ndarray:
    return np.ones((1, count), np.uint8)


def zeros(count: int = 4) -> np.ndarray:
    return np.zeros((1, count), np.uint8)


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


def test_only_host_tensors():
    with ThreadDevice() as device:
        tensor = torch.zeros(1, 2, 3, dtype=torch.uint8, device="meta")
        with pytest.raises(DeviceError, match="meta"):
            device.view(Memory.DEVICE, tensor)
        assert device.view(Memory.DEVICE, torch.zeros(1, 2, 3, dtype=torch.uint8)).shape == (1, 2, 3)


def test_an_error_is_raised_by_the_waits_that_cover_it_and_passes_to_streams_that_wait():
    with ThreadDevice() as device:
        target = zeros()
        before, behind, across = (device.event() for _ in range(3))
        with device.hold(everything):
            device.record(before, "a")
            device.copy("a", ones(3), zeros(4))
            device.record(behind, "a")
            device.wait_event("b", behind)
            device.copy("b", ones(), target)
            device.record(across, "b")
            device.wait(before)
            for event in (across, behind, behind):
                with pytest.raises(ValueError, match="could not broadcast"):
                    device.wait(event)
                with pytest.raises(ValueError, match="could not broadcast"):
                    device.query(event)
        assert target.sum() == 0, "what waits for a failed copy is skipped"
        for stream in "ab":
            device.copy(stream, ones(), target)
            device.synchronize(stream)
        assert target.sum() == 4


@pytest.mark.parametrize("held", [True, False])
def test_kernels_are_asynchronous_and_in_order(held):
    pool, index = np.arange(24, dtype=np.uint8).reshape(3, 2, 4), np.array([4, 5, 1])
    packed, back = np.zeros((3, 4), np.uint8), np.zeros_like(pool)
    with ThreadDevice() as device, device.hold(lambda _stream, _index: held):
        device.gather("a", pool, index, packed)
        device.scatter("a", packed, back, index)
        if held:
            assert (packed.sum(), back.sum()) == (0, 0)
        device.synchronize("a")
        assert np.array_equal(packed, pool.reshape(6, 4)[index])
        assert np.array_equal(back.reshape(6, 4)[index], packed)
        assert back.sum() == packed.sum() > 0
        assert (device.copies, device.launches, device.waits) == (0, 2, 1)
