"""The device of worker threads: asynchronous, in order, and honest about errors."""

import gc
import threading
import traceback
from itertools import pairwise

import numpy as np
import pytest
import torch

from kvstage import ClosedError, DeviceError, ThreadDevice
from kvstage_model.buffers import Memory

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


def test_an_event_waits_for_its_last_record_and_not_for_more():
    with ThreadDevice() as device:
        first, second, third, event = zeros(), zeros(), zeros(), device.event()
        with device.hold(everything):
            device.copy("a", ones(), first)
            device.record(event, "a")
            device.copy("a", ones(), second)
            assert not device.query(event)
            device.wait(event)
            assert device.query(event)
            assert (first.sum(), second.sum()) == (4, 0)
            device.record(event, "a")
            device.copy("a", ones(), third)
            assert not device.query(event)
            device.wait(event)
            assert (second.sum(), third.sum()) == (4, 0)


def test_the_last_record_counts_even_on_another_stream():
    with ThreadDevice() as device:
        first, second, event = zeros(), zeros(), device.event()
        with device.hold(everything):
            device.copy("a", ones(), first)
            device.record(event, "a")
            device.copy("b", ones(), second)
            device.record(event, "b")
            device.wait(event)
            assert (first.sum(), second.sum()) == (0, 4)


def test_an_event_that_was_never_recorded_holds_nobody_up():
    with ThreadDevice() as device:
        target, event = zeros(), device.event()
        assert device.query(event)
        device.wait(event)
        device.wait_event("a", event)
        device.copy("a", ones(), target)
        device.synchronize("a")
        assert target.sum() == 4
        assert device.waits == 2


def test_a_stream_waits_for_what_the_event_marked_when_the_wait_was_issued():
    with ThreadDevice() as device:
        first, second, later, event = zeros(), zeros(), zeros(), device.event()
        with device.hold(lambda stream, _index: stream == "a"):
            device.copy("a", ones(), first)
            device.record(event, "a")
            device.wait_event("b", event)
            device.copy("b", first, second)
            device.copy("a", ones(), later)
            device.record(event, "a")
            device.synchronize("b")  # lets go of what b waits for, and not of what was issued on a behind it
            assert (first.sum(), second.sum(), later.sum()) == (4, 4, 0)


def test_twin_without_the_streams_wait_it_reads_too_early():
    with ThreadDevice() as device:
        first, second = zeros(), zeros()
        with device.hold(lambda stream, _index: stream == "a"):
            device.copy("a", ones(), first)
            device.copy("b", first, second)
            device.synchronize("b")
            assert (first.sum(), second.sum()) == (0, 0)


def test_a_wait_lets_go_of_a_chain_of_streams():
    with ThreadDevice() as device:
        chain = [ones(), *(zeros() for _ in range(4))]
        with device.hold(everything):
            for k, (source, target) in enumerate(pairwise(chain)):
                event = device.event()
                device.copy(f"{k}", source, target)
                device.record(event, f"{k}")
                device.wait_event(f"{k + 1}", event)
            device.copy("4", ones(), zeros())
            device.synchronize("4")
        assert chain[-1].sum() == 4


def test_several_threads_may_wait_for_one_event():
    with ThreadDevice() as device:
        event, target, seen = device.event(), zeros(), []
        with device.hold(everything) as held:
            device.copy("a", ones(), target)
            device.record(event, "a")

            def wait() -> None:
                device.wait(event)
                seen.append(int(target.sum()))

            threads = [threading.Thread(target=wait) for _ in range(4)]
            held.release()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(SECONDS)
        assert seen == [4] * 4


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
