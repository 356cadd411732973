"""What is OpenCL's alone: finding a driver, failures, forks, interrupts, and memory that must live long enough."""

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kvstage import DeviceError, ForkedError, OpenCLDevice, OpenCLMissingError, PagedPool, Stager
from kvstage.devices.opencl import device as opencl_device
from kvstage.devices.opencl import driver
from kvstage.devices.opencl.kernels import cut, runs
from kvstage.devices.opencl.queue import UserEventGate
from kvstage_model.language.buffers import Memory
from tests.support.devices import everything, ones, refusals, zeros


@pytest.fixture
def device():
    with OpenCLDevice() as device:
        yield device


# -- finding a driver


def test_without_pyopencl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(OpenCLMissingError, match=r"pip install 'kvstage\[opencl\]'"):
        OpenCLDevice()


class Stub:
    """What `find` asks of pyopencl, where no driver or no CPU is there."""

    Error = LookupError
    device_type = SimpleNamespace(CPU=2, GPU=4)

    def __init__(self, devices: list[str] | None) -> None:
        self.devices = devices

    def get_platforms(self):
        if self.devices is None:
            raise self.Error("PLATFORM_NOT_FOUND_KHR")
        found = [SimpleNamespace(name=name, type=self.device_type.GPU, host_unified_memory=True) for name in self.devices]
        return [SimpleNamespace(get_devices=lambda: found)]


@pytest.mark.parametrize(("devices", "says"), [(None, "no OpenCL driver"), ([], "found: none"), (["a", "b"], "found: a, b")])
def test_without_a_cpu_the_error_says_what_was_found_and_what_to_install(monkeypatch, devices, says):
    monkeypatch.setattr(driver, "import_module", lambda name: Stub(devices))
    with pytest.raises(OpenCLMissingError, match=says) as caught:
        OpenCLDevice()
    assert "pip install" in str(caught.value)


def test_where_the_driver_cannot_write_its_cache_the_error_says_so():
    program = "import kvstage\ntry: kvstage.OpenCLDevice()\nexcept kvstage.OpenCLMissingError as error: print(error)"
    nowhere = {"POCL_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/proc/nowhere"}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **nowhere}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert "XDG_CACHE_HOME" in run.stdout


# -- failures


def test_a_failure_comes_at_the_wait_that_covers_it_and_once_at_a_later_one(device, monkeypatch):
    monkeypatch.setattr(UserEventGate, "set", lambda gate: gate.event.set_status(-5))
    target, event = zeros(device), device.event()
    source = ones(device)
    with device.hold(everything):
        device.copy("a", source.handle, target.handle)
        device.record(event, "a")
        for _ in range(2):
            with pytest.raises(DeviceError, match="stream 'a' failed"):
                device.wait(event)
            with pytest.raises(DeviceError, match="stream 'a' failed"):
                device.query(event)
    assert target.sum == 0, "what failed has moved nothing"
    device.copy("a", source.handle, target.handle)
    device.synchronize("a")
    assert target.sum == 4


def test_a_failure_that_a_later_command_has_covered_up_is_raised_by_the_wait_for_that_one(device, monkeypatch):
    monkeypatch.setattr(UserEventGate, "set", lambda gate: gate.event.set_status(-5))
    source, target = ones(device), zeros(device)
    with device.hold(everything):
        device.copy("a", source.handle, zeros(device).handle)
    device.copy("a", source.handle, target.handle)
    with pytest.raises(DeviceError, match="OpenCL status -"):
        device.synchronize("a")
    device.synchronize("a")
    assert target.sum == 4


def test_a_failure_that_nobody_waited_for_comes_at_close(monkeypatch):
    monkeypatch.setattr(UserEventGate, "set", lambda gate: gate.event.set_status(-5))
    device = OpenCLDevice()
    with device.hold(everything):
        device.copy("a", ones(device).handle, zeros(device).handle)
    with pytest.raises(DeviceError, match="stream 'a' failed"):
        device.close()
    device.close()


def test_sides_of_different_size_are_refused_and_nothing_is_written(device):
    source, target = ones(device, 8), zeros(device, 4)
    with pytest.raises(DeviceError, match="a copy of 8 bytes to 4 bytes"):
        device.copy("a", source.handle, target.handle)
    assert (target.sum, device.copies) == (0, 0)


@pytest.mark.parametrize("index", [[6], [-1], [0, 6], [4, 5, 6]])
def test_rows_outside_the_pool_are_refused_and_nothing_is_launched(device, index):
    pool = torch.zeros(3, 2, 4, dtype=torch.uint8)
    packed = torch.ones(1, len(index), 4, dtype=torch.uint8)
    handles = device.view(Memory.DEVICE, pool), device.view(Memory.PINNED, packed)[0, 0 : len(index)]
    with pytest.raises(DeviceError, match="some of 0 to 5"):
        device.gather("a", handles[0], np.array(index, np.int64), handles[1])
    with pytest.raises(DeviceError, match="some of 0 to 5"):
        device.scatter("a", handles[1], handles[0], np.array(index, np.int64))
    assert (pool.sum(), packed.sum(), device.launches) == (0, packed.numel(), 0)


def test_packed_rows_of_another_shape_are_refused(device):
    pool, packed = torch.zeros(3, 2, 4, dtype=torch.uint8), torch.zeros(1, 2, 4, dtype=torch.uint8)
    with pytest.raises(DeviceError, match="3 rows of 4 bytes do not fit"):
        device.gather("a", device.view(Memory.DEVICE, pool), np.arange(3), device.view(Memory.PINNED, packed)[0, 0:2])


# -- runs


def test_a_run_ends_with_its_block_and_where_the_next_row_is_elsewhere(device):
    pool, packed = torch.zeros(5, 2, 4, dtype=torch.uint8), torch.zeros(1, 7, 4, dtype=torch.uint8)
    index = np.array([3, 8, 9, 0, 1, 2, 7])
    found = runs(device.view(Memory.DEVICE, pool), cut(index, 2), device.view(Memory.PINNED, packed)[0, 0:7])
    assert found.tolist() == [[12, 0, 4], [32, 4, 8], [0, 12, 8], [8, 20, 4], [28, 24, 4]]


@pytest.mark.parametrize("writeable", [True, False])
def test_an_index_is_cut_anew_where_it_may_have_changed(device, writeable):
    pool, index = ones(device, 24), np.array([0, 1])
    index.flags.writeable = writeable
    cuts = [device._mover._cut(device.view(Memory.DEVICE, pool.tensor.view(3, 2, 4)), index) for _ in range(2)]
    assert (cuts[0] is cuts[1]) != writeable


# -- memory


def test_views_of_one_storage_have_one_memory_object_as_long_as_one_of_them_lives(device):
    base = torch.arange(48, dtype=torch.uint8)
    left, right = (device.view(Memory.DEVICE, base[at : at + 24].view(3, 2, 4)) for at in (0, 24))
    assert left.memory is right.memory
    assert (left[1, 0:1].offset, right[1, 1:2].offset) == (8, 36)
    gone = weakref.ref(left.memory)
    del left, right
    gc.collect()
    assert gone() is None


def test_what_is_under_way_keeps_its_memory(device):
    source, target = ones(device, 1 << 16), zeros(device, 1 << 16)
    kept = weakref.ref(source.handle.memory)
    with device.hold(everything):
        device.copy("a", source.handle, target.handle)
        del source
        gc.collect()
        assert kept() is not None
        device.synchronize("a")
    assert target.sum == 1 << 16
    gc.collect()
    assert kept() is None, "and not longer"


def test_a_device_that_is_dropped_ends_its_work_first():
    device = OpenCLDevice()
    source, target = ones(device, 1 << 22), zeros(device, 1 << 22)
    for _ in range(10):
        device.copy("a", source.handle, target.handle)
    dropped = weakref.ref(device)
    del device
    gc.collect()
    assert dropped() is None
    assert target.sum == 1 << 22


def test_at_the_end_a_hold_that_was_never_left_keeps_nobody_up(device):
    source, target = ones(device), zeros(device)
    with device.hold(everything):
        device.copy("a", source.handle, target.handle)
        assert target.sum == 0
        opencl_device._finish(os.getpid(), device._queues, device._holds)  # what the interpreter calls when it ends
        assert target.sum == 4


def test_a_tensor_larger_than_a_memory_object_may_be_is_refused(device):
    most = device._driver.context.devices[0].max_mem_alloc_size
    large = torch.empty(most + 1, dtype=torch.uint8)  # never touched, so it costs nothing
    with pytest.raises(DeviceError, match="give it a tensor of its own"):
        device.view(Memory.DEVICE, large.view(1, 1, -1))


# -- processes and signals


def test_after_a_fork_the_child_gets_an_error_and_does_not_hang(device):
    target = zeros(device)
    source, event = ones(device), device.event()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of threads: they are what this is about
        child = os.fork()
    if not child:  # as little as possible: the parent's threads are not here
        calls = [
            lambda: device.copy("a", source.handle, target.handle),
            lambda: device.synchronize("a"),
            lambda: device.wait(event),
            lambda: device.query(event),
            device.close,
        ]
        os._exit(0 if refusals(calls, ForkedError) == len(calls) else 1)
    assert os.waitpid(child, 0)[1] == 0
    device.copy("a", source.handle, target.handle)
    device.synchronize("a")
    assert target.sum == 4


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where whoever started the tests had it ignored, as shells do in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_wait_can_be_interrupted_and_the_work_ends_later(device, monkeypatch, interruptible):
    source, target, event = ones(device), zeros(device), device.event()
    with device.hold(everything) as held:
        monkeypatch.setattr(held, "let_go", lambda stream, number: None)
        device.copy("a", source.handle, target.handle)
        device.record(event, "a")
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            device.wait(event)
        assert target.sum == 0
    device.wait(event)
    assert target.sum == 4


# -- the library on it


def test_a_pool_in_the_middle_of_a_tensor_with_gaps_between_its_blocks_is_read_and_written(device):
    base = torch.randint(0, 256, (7, 40), dtype=torch.uint8)
    pool = PagedPool(base[1:, 3:33].unflatten(1, (5, 6)))
    before, table = base.clone(), [4, 0, 2]
    stager = Stager(device, scheme="gather_pinned")
    read = stager.read(pool, table, 3, 13)
    read.wait()
    expected = torch.stack([pool.tensor[table[p // 5], p % 5] for p in range(3, 13)])
    assert torch.equal(read.result(), expected)
    stager.write(pool, table, 3, 255 - expected).wait()
    changed = before.clone()
    for p in range(3, 13):
        at = 3 + p % 5 * 6
        changed[1 + table[p // 5], at : at + 6] ^= 255
    assert torch.equal(base, changed)
