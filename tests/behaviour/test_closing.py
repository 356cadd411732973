"""`close` against calls that are on their way in, and again after an interrupt: what was issued ends, and nothing comes later."""

import os
import signal
from contextlib import nullcontext, suppress
from threading import Event, Thread, Timer

import pytest
import torch

from kvstage import ClosedError, PagedPool, Stager, ThreadDevice
from kvstage.calls import Calls
from kvstage.devices import threads
from kvstage.devices.named_streams import OWN_STREAMS

PATIENCE = 0.05
"""Seconds that a call stays where a close might come between, if that can."""


class Slow(ThreadDevice):
    """Its first piece of work is late: after the look at `closed`, before it is queued."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.over = Event(), Event()

    def _worker(self, stream):
        worker = super()._worker(stream)
        if not self.inside.is_set():
            self.inside.set()
            self.over.wait(PATIENCE)
        return worker


@pytest.mark.parametrize("locked", [True, False])
def test_a_device_is_closed_before_or_after_a_call_of_another_thread(monkeypatch, watch, locked):
    """The twin closes it in the midst, and work that is queued after the end of a worker never ends."""
    if not locked:
        monkeypatch.setattr(threads, "lock_of", lambda device: nullcontext())
    pool, transfers, device = PagedPool(torch.ones(4, 2, 3)), [], Slow()
    stager = Stager(device, scheme="direct")

    def call() -> None:
        with suppress(ClosedError):
            transfers.append(stager.read(pool, [1], 0, 2))

    thread = Thread(target=call)
    thread.start()
    device.inside.wait()
    device.close()
    device.over.set()
    thread.join()
    ended = [transfer.query() for transfer in transfers]
    assert ended == ([True] if locked else [])
    with pytest.raises(ClosedError):
        stager.read(pool, [1], 0, 2)
    watch.taken()


class ClosingTable(list):
    """Closes something when it is read: after the first look at `closed`, before anything is issued."""

    def __init__(self, ids, what) -> None:
        super().__init__(ids)
        self.what = what

    def __len__(self) -> int:
        self.what.close()
        return super().__len__()


@pytest.mark.parametrize("what", ["stager", "device"])
@pytest.mark.parametrize("scheme", ["direct", "per_block"])
def test_a_call_that_finds_it_closed_meanwhile_is_refused(what, scheme):
    pool, device = PagedPool(torch.zeros(4, 2, 3)), ThreadDevice()
    stager = Stager(device, scheme=scheme)
    table = ClosingTable([1], stager if what == "stager" else device)
    for call in (lambda: stager.write(pool, table, 0, torch.ones(2, 3)), lambda: stager.read(pool, table, 0, 2)):
        with pytest.raises(ClosedError):
            call()
    device.close()
    assert not pool.tensor.any()


def test_twin_without_the_second_look_it_writes_after_the_end_of_close(monkeypatch):
    monkeypatch.setattr(Calls, "_begin", Calls._forget_what_has_ended)
    pool = PagedPool(torch.zeros(4, 2, 3))
    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct")
        stager.write(pool, ClosingTable([1], stager), 0, torch.ones(2, 3))
    assert pool.tensor[1].all()


@pytest.mark.parametrize("forgets", [False, True])
def test_a_close_after_an_interrupted_one_finishes_the_work(forgets):
    """The twin has forgotten its workers by then."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background of a shell ignores it
    pool, device, gate = PagedPool(torch.ones(4, 2, 3)), ThreadDevice(), Event()
    device._worker(OWN_STREAMS["copy"]).queue.put((gate.wait, (), None, None))
    transfer = Stager(device, scheme="direct").read(pool, [1], 0, 2)
    timer = Timer(PATIENCE, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        device.close()
    assert not transfer.query()
    if forgets:
        device._workers.clear()
        device.close()
        assert not transfer.query()
    Timer(PATIENCE, gate.set).start()
    device.close()
    assert transfer.query() or forgets
    gate.set()
