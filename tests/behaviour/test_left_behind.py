"""What is dropped with work under way is freed when that has ended: stagers, their owners, and transfers that were cancelled."""

import gc
import weakref

import numpy as np
import pytest
import torch

from kvstage import PagedPool, PinnedMemoryError, Stager, ThreadDevice
from kvstage.calls import Calls
from kvstage.devices import threads
from kvstage.devices.left_behind import LeftBehind, left_behind
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage.runtime import pending
from kvstage.runtime.pending import Pending
from tests.support.devices import everything

STAGERS = 3


def kept(memory: list[weakref.ref]) -> int:
    gc.collect()
    return sum(array() is not None for array in memory)


def leave(device: ThreadDevice) -> list[weakref.ref]:
    """Stagers that are dropped at once, each with a write that is held: the memory of their pools."""
    memory = []
    for _ in range(STAGERS):
        array = np.ones((8, 4, 3), np.float32)
        Stager(device, scheme="direct").write(PagedPool(torch.from_numpy(array)), [1, 2], 0, torch.ones(8, 3))
        memory.append(weakref.ref(array))
    return memory


@pytest.mark.parametrize("lets_go", [True, False])
def test_memory_of_dropped_stagers_goes_at_the_next_call_after_their_work(monkeypatch, lets_go):
    if not lets_go:
        monkeypatch.setattr(LeftBehind, "let_go", lambda left, device: None)
    with ThreadDevice() as device:
        with device.hold(everything):
            memory = leave(device)
            assert kept(memory) == STAGERS, "their work has not begun"
        device.synchronize(OWN_STREAMS["copy"])
        Stager(device, scheme="direct").read(PagedPool(torch.ones(2, 4, 3)), [1], 0, 4).wait()
        assert kept(memory) == (0 if lets_go else STAGERS)


@pytest.mark.parametrize("lets_go", [True, False])
def test_or_when_the_device_is_closed(monkeypatch, lets_go):
    with ThreadDevice() as device:
        memory = leave(device)
        if not lets_go:
            monkeypatch.setattr(threads, "left_behind", lambda device: LeftBehind())
    assert (kept(memory) == 0) is lets_go  # calls have let go of what had ended before them


def test_memory_of_a_call_that_was_interrupted_goes_too():
    class Interrupted(ThreadDevice):
        def synchronize(self, stream):
            raise KeyboardInterrupt

    with Interrupted() as device:
        array = np.ones((8, 4, 3), np.float32)
        memory = [weakref.ref(array)]
        with pytest.raises(KeyboardInterrupt):
            Stager(device, scheme="per_block").write(PagedPool(torch.from_numpy(array)), [1], 0, torch.ones(4, 3))
        del array
        gc.collect()
        ThreadDevice.synchronize(device, OWN_STREAMS["copy"])
        left_behind(device).let_go(device)  # marks it
        ThreadDevice.synchronize(device, OWN_STREAMS["copy"])
        left_behind(device).let_go(device)
        assert kept(memory) == 0


def test_the_failure_of_a_dropped_stager_is_raised_once_by_the_next_call():
    class Failing(ThreadDevice):
        def copy(self, stream, source, target):
            super().copy(stream, source, target if self.copies else target[:, :1])

    pool = PagedPool(torch.ones(8, 4, 3))
    with Failing() as device:
        Stager(device, scheme="direct").read(pool, [1], 0, 4)
        gc.collect()
        device._workers[OWN_STREAMS["copy"]].mark(0).block()
        stager = Stager(device, scheme="direct")
        with pytest.raises(ValueError, match="could not broadcast"):
            stager.read(pool, [1], 0, 4)
        stager.read(pool, [1], 0, 4).wait()


class Engine:
    """Owns its device and stager, and is told of transfers."""

    def __init__(self) -> None:
        self.stager = Stager(ThreadDevice(), scheme="direct", on_transfer=self.moved)

    def moved(self, _: object) -> None:
        pass


def engine_lives(watch) -> bool:
    """Whether an engine is kept that was dropped with a transfer which nobody waited for."""
    engine = Engine()
    alive = weakref.ref(engine)
    engine.stager.write(PagedPool(torch.zeros(4, 2, 3)), [3, 1], 0, torch.zeros(3, 3))
    del engine
    watch._recorders.clear()  # they hold the device
    gc.collect()
    return alive() is not None


def test_a_hook_that_refers_to_its_owner_keeps_nobody_alive(watch):
    assert not engine_lives(watch)


def test_twin_what_finalizers_hold_must_not_lead_back(monkeypatch, watch):
    made = Calls.__init__

    def leads_back(calls: Calls, *arguments: object) -> None:
        made(calls, *arguments)
        weakref.finalize(calls, print, calls._under_way).atexit = False

    monkeypatch.setattr(Calls, "__init__", leads_back)
    assert engine_lives(watch)


class HookError(Exception):
    """What a hook raises."""


def first_of_all(due) -> None:
    """The twin: what comes after an error is not done."""
    taken = list(due)
    due.clear()
    for do in taken:
        do()


@pytest.mark.parametrize("all_done", [True, False])
def test_memory_of_a_cancelled_transfer_goes_back_whatever_its_hook_raises(monkeypatch, all_done):
    if not all_done:
        monkeypatch.setattr(pending, "_do_all", first_of_all)
        monkeypatch.setattr(Pending, "once_free", Pending.at_end)
    raising = True

    def hook(_: object) -> None:
        if raising:
            raise HookError

    pool = PagedPool(torch.rand(8, 4, 3))
    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=hook, pinned_bytes=400)
        cancelled = stager.read(pool, range(8), 0, 32)  # 384 bytes
        cancelled.cancel()
        with pytest.raises(HookError):
            cancelled.wait()
        raising = False
        if all_done:
            stager.read(pool, range(8), 0, 32).wait()
        else:
            with pytest.raises(PinnedMemoryError):
                stager.read(pool, range(8), 0, 32)
        stager.close()
