"""What a fault has left undone is told by the mark behind it, whoever has seen the error before."""

import time

import numpy as np
import pytest
import torch

from kvstage import DeviceError, OpenCLDevice, PagedPool, Stager, ThreadDevice
from kvstage.devices.opencl.queue import Queue, UserEventGate
from kvstage.devices.thread_worker import Worker
from tests.support.devices import everything
from tests.support.devices import ones as ones_of
from tests.support.devices import zeros as zeros_of

ROWS = 4000


def ones(count: int = 4) -> np.ndarray:
    return np.ones((1, count), np.uint8)


def zeros(count: int = 4) -> np.ndarray:
    return np.zeros((1, count), np.uint8)


def until_idle(worker: Worker, left: int) -> None:
    """Returns when the worker has taken all but the last `left` entries of its queue."""
    while worker.queue.qsize() > left:
        time.sleep(0)


def forget_at_once(worker: Worker, error: BaseException) -> None:
    """The mistake: what was queued before the host saw the error is done again, too, from the next entry on."""
    worker.error = worker.untold = None


def seen_in_the_middle(device: ThreadDevice) -> tuple[list[np.ndarray], bool]:
    """Sees an error while the stream has skipped one of two copies of the next piece of work: both, and if that was told."""
    first, second, other = device.event(), device.event(), device.event()
    targets = [zeros(), zeros()]
    with device.hold(lambda stream, _index: stream == "b"):
        device.copy("b", ones(), zeros())
        device.record(other, "b")
        device.copy("a", ones(3), zeros(4))
        device.record(first, "a")
        device.copy("a", ones(), targets[0])
        device.wait_event("a", other)
        device.copy("a", ones(), targets[1])
        device.record(second, "a")
        until_idle(device._workers["a"], 2)
        with pytest.raises(ValueError, match="could not broadcast"):
            device.wait(first)
        try:
            device.wait(second)
        except ValueError:
            return targets, True
        return targets, False


def test_an_error_that_was_seen_is_told_by_the_next_mark_if_work_before_it_was_skipped():
    with ThreadDevice() as device:
        targets, told = seen_in_the_middle(device)
        assert [int(target.sum()) for target in targets] == [0, 0]
        assert told
        device.copy("a", ones(), targets[0])
        device.synchronize("a")
        assert targets[0].sum() == 4, "what is queued behind is done"


def test_twin_a_stream_that_goes_on_at_once_loses_a_copy_and_tells_nobody(monkeypatch):
    monkeypatch.setattr(Worker, "forget", forget_at_once)
    with ThreadDevice() as device:
        targets, told = seen_in_the_middle(device)
        assert [int(target.sum()) for target in targets] == [0, 4]
        assert not told


def test_skipped_work_with_no_mark_behind_it_is_told_at_close():
    device = ThreadDevice()
    event = device.event()
    with device.hold(everything):
        device.copy("a", ones(3), zeros(4))
        device.record(event, "a")
        device.copy("a", ones(), zeros())
        with pytest.raises(ValueError, match="could not broadcast"):
            device.wait(event)
    with pytest.raises(ValueError, match="could not broadcast"):
        device.close()


def test_a_wait_for_what_was_skipped_elsewhere_is_told_here_even_after_that_error_was_seen():
    with ThreadDevice() as device:
        behind, across = device.event(), device.event()
        with device.hold(lambda stream, _index: stream == "a"):
            device.copy("a", ones(3), zeros(4))
            device.record(behind, "a")
            device.wait_event("b", behind)
            device.record(across, "b")
            for event in (behind, across):
                with pytest.raises(ValueError, match="could not broadcast"):
                    device.wait(event)


class Faulty(ThreadDevice):
    """The third copy fails on its worker."""

    def copy(self, stream: str, source: np.ndarray, target: np.ndarray) -> None:
        super().copy(stream, source, target[:, :3] if self.copies == 2 else target)


def test_each_transfer_that_was_under_way_is_told_and_the_next_one_is_right():
    pool = PagedPool(torch.ones(ROWS, 1, 16, dtype=torch.uint8))
    out = torch.zeros(ROWS, 16, dtype=torch.uint8)
    with Faulty() as device, Stager(device, scheme="direct") as stager:
        with device.hold(lambda _stream, index: index == 0):
            short, long = stager.read(pool, range(3), 0, 3), stager.read(pool, range(ROWS), 0, ROWS, out=out)
            with pytest.raises(ValueError, match="could not broadcast"):
                short.wait()
            for _ in range(2):
                with pytest.raises(ValueError, match="could not broadcast"):
                    long.wait()
        assert not out.any()
        stager.read(pool, range(ROWS), 0, ROWS, out=out).wait()
        assert out.all()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_failure_is_raised_by_the_first_event_behind_it_whatever_was_raised_before(monkeypatch, keeps):
    if not keeps:  # the twin: no mark takes a failure over, so whoever looks first is told, and nobody else
        monkeypatch.setattr(Queue, "check", lambda queue, mark: queue.check_all())
    monkeypatch.setattr(UserEventGate, "set", lambda gate: gate.event.set_status(-5))
    with OpenCLDevice() as device:
        cells = ones_of(device), zeros_of(device)
        first, second = device.event(), device.event()
        with device.hold(everything):
            device.copy("a", cells[0].handle, cells[1].handle)
        device.copy("a", cells[0].handle, cells[1].handle)
        device.record(first, "a")
        device.copy("a", cells[0].handle, cells[1].handle)
        device.record(second, "a")
        raised = []
        for event in (second, first):
            try:
                device.wait(event)
            except DeviceError:
                raised.append(event)
    assert raised == ([first] if keeps else [second])
