"""The cost model: its formula, and what measuring finds on a device whose costs are known."""

import math
from dataclasses import replace

import pytest
import torch

from kvstage import DeviceError, HostDevice, ThreadDevice
from kvstage.costs import HOST, PCIE_4, PCIE_5, Costs
from kvstage.selection import measurement
from kvstage.selection.measurement import costs_of, measured
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.counts import Counts

KNOWN = Costs(9e-6, 4e-6, 5e-6, 2e9, 8e9, frozenset({Memory.DEVICE, Memory.PINNED}), "known")


def test_the_formula():
    """3 waits, 5 copies, 2 kernels; 10 rows moved and 4 taken of 1000 bytes."""
    assert KNOWN.seconds(Counts(5, 3, 2, 10, 4), 1000) == pytest.approx(27e-6 + 20e-6 + 10e-6 + 10_000 / 2e9 + 4_000 / 8e9)
    assert KNOWN.seconds(Counts(0, 0, 0, 0, 0), 1000) == 0


class ClockedDevice(HostDevice):
    """Moves nothing, and moves a clock on: work takes the host what it costs to issue, and its bytes where it is waited for."""

    costs = None

    def __init__(self, known: Costs) -> None:
        super().__init__()
        self.known, self.now, self.left = known, 0.0, 0.0

    def copy(self, stream, source, target) -> None:
        assert source.shape == target.shape
        self.now += self.known.copy
        self.left += source.nbytes / self.known.bandwidth

    def host_copy(self, source, target) -> None:
        self.now += source.nbytes / self.known.host_bandwidth

    def synchronize(self, stream) -> None:
        self.now += self.known.wait + self.left
        self.left = 0.0


@pytest.fixture
def clocked(monkeypatch):
    def make(known: Costs) -> ClockedDevice:
        device = ClockedDevice(known)
        monkeypatch.setattr(measurement, "perf_counter", lambda: device.now)
        return device

    return make


@pytest.mark.parametrize("known", [KNOWN, replace(KNOWN, wait=1e-6, copy=3e-5, bandwidth=50e9), PCIE_4, PCIE_5])
def test_measuring_finds_what_is_known(monkeypatch, clocked, known):
    device = clocked(known)
    monkeypatch.setattr(measurement._Measuring, "_kernels", lambda self: known.kernels)
    device.gather = lambda stream, source, index, target: setattr(device, "now", device.now + known.launch)
    found = measured(device)
    assert found.kernels == known.kernels
    assert found.source == "measured on ClockedDevice"
    for name in ("wait", "copy", "launch", "bandwidth", "host_bandwidth"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=0.05), name


class Reaching(HostDevice):
    """Its kernels reach some memory only."""

    costs = None

    def __init__(self, *reach: Memory) -> None:
        super().__init__()
        self._reach, self._seen = reach, {}

    def view(self, memory, tensor):
        self._seen[tensor.data_ptr()] = memory
        return super().view(memory, tensor)

    def gather(self, stream, source, index, target) -> None:
        if self._seen[target.ctypes.data] not in self._reach:
            raise DeviceError("out of reach")
        super().gather(stream, source, index, target)


@pytest.mark.parametrize("reach", [(), (Memory.DEVICE,), (Memory.DEVICE, Memory.PINNED), tuple(Memory)])
def test_measuring_finds_what_kernels_reach(reach):
    found = measured(Reaching(*reach))
    assert found.kernels == frozenset(reach)
    assert (found.launch > 0) == bool(reach)


def test_measuring_a_real_device_gives_numbers_that_can_be_used():
    with ThreadDevice() as device:
        found = costs_of(device)
        device.synchronize("anything")
    assert found.kernels == frozenset(Memory)
    for name in ("wait", "copy", "launch", "bandwidth", "host_bandwidth"):
        assert 0 < getattr(found, name) < math.inf
    assert found.wait < 0.1
    assert found.bandwidth > 1e6


def test_a_device_that_states_its_costs_is_not_measured(monkeypatch):
    monkeypatch.setattr(measurement, "measured", lambda device: pytest.fail("measured"))
    assert costs_of(HostDevice()) is HOST


def test_what_is_published_is_in_the_order_of_the_machines():
    moved = Counts(1, 1, 0, 100_000, 0)
    flat = 100_000 * 1024 / 53e9
    assert flat < PCIE_5.seconds(moved, 1024) < 1.1 * flat < PCIE_4.seconds(moved, 1024)
    assert torch.tensor([PCIE_5.copy, PCIE_5.wait, PCIE_5.launch]).max() < 2e-5
