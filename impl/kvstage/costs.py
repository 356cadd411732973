"""What a transfer costs, by a model that is told once: for `scheme="auto"`, and for benchmarks that compare it with clocks.

    t = waits * wait + copies * copy + launches * launch + bytes / bandwidth + bytes that the host copies / host_bandwidth

Nothing overlaps in it, so it is too high for rings, which copy while the host works: it ranks schemes, and predicts none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from kvstage_model.buffers import Memory
from kvstage_model.counts import Counts

from .device import Device
from .errors import DeviceError

ROW_BYTES, BLOCK_SIZE, BLOCKS = 1024, 32, 128
ROWS = BLOCKS * BLOCK_SIZE
"""The pool that a device is measured with: 4 MiB."""
TRIPS, MANY, WHOLE = 20, 32, 3
"""How often a round trip is timed; how many copies or kernels are timed together; how often all bytes are moved."""
SMALL = 16
"""Bytes of the copies that are timed for their number."""
LEAST = 1e-9
"""Seconds: what is measured on a busy machine may come out as less than nothing."""
STREAM = "measuring"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes: seconds for each wait, copy and kernel, and bytes a second.

    `kernels` is the memory that kernels of the device read and write, packed rows in it: DEVICE for any kernels at all,
    PINNED and PAGEABLE where they reach the host's. `source` says where the numbers are from.
    """

    wait: float
    copy: float
    launch: float
    bandwidth: float
    host_bandwidth: float
    kernels: frozenset[Memory]
    source: str

    def seconds(self, counts: Counts, row_bytes: int) -> float:
        """The time of a transfer that asks for so much, with rows of so many bytes."""
        work = counts.waits * self.wait + counts.copies * self.copy + counts.launches * self.launch
        return work + row_bytes * (counts.moved / self.bandwidth + counts.taken / self.host_bandwidth)


PCIE_5_LEAST = Costs(
    wait=4.5e-6,
    copy=2.3e-6,
    launch=3e-6,
    bandwidth=53e9,
    host_bandwidth=14e9,
    kernels=frozenset({Memory.DEVICE, Memory.PINNED}),
    source="published for PCIe 5 x16, the least",
)
"""An accelerator behind PCIe 5, 16 lanes: the least that was reported.

The link carries 32 GT/s * 16 lanes * 128/130 = 63 GB/s, of which 52 to 54 arrive behind packet headers and flow control. A
small `cudaMemcpyAsync` takes 2.3 to 7 us (5 to 7: "DualPath", arXiv 2602.21548, section 5.2), a wait 4.5 to 16 us, a kernel
about 3 us to launch, and one core copies 13 to 16 GB/s.
"""
PCIE_5_MOST = replace(PCIE_5_LEAST, wait=16e-6, copy=7e-6, source="published for PCIe 5 x16, the most")
"""The most that was reported for the same."""
PCIE_5 = replace(PCIE_5_LEAST, wait=10e-6, copy=5e-6, source="published for PCIe 5 x16")
"""In the middle of both."""
PCIE_4 = replace(PCIE_5, bandwidth=25e9, source="published for PCIe 4 x16")
"""Behind PCIe 4: 16 GT/s, so half of it."""

HOST = Costs(
    wait=1e-6,
    copy=3e-6,
    launch=1e-5,
    bandwidth=10e9,
    host_bandwidth=10e9,
    kernels=frozenset(Memory),
    source="memory that the host addresses",
)
"""`HostDevice`: no wait blocks, and a kernel is one call of numpy. Only the order of its schemes matters, not the numbers."""


def costs_of(device: Device[Any, Any]) -> Costs:
    """The `costs` that a device states of itself; measured where it states none."""
    stated: Costs | None = getattr(device, "costs", None)
    return measured(device) if stated is None else stated


def measured(device: Device[Any, Any]) -> Costs:
    """Costs of a device, in some hundredths of a second: medians of its own copies, waits and kernels. It must be idle."""
    return _Measuring(device).costs()


class _Measuring:
    """A pool on the device, and as many packed rows in each kind of memory."""

    def __init__(self, device: Device[Any, Any]) -> None:
        self._device = device
        self._pool = self._new(Memory.DEVICE, BLOCKS, BLOCK_SIZE, ROW_BYTES)
        self._packed = {memory: self._new(memory, 1, ROWS, ROW_BYTES) for memory in Memory}
        self._small = {memory: self._new(memory, 1, 1, SMALL) for memory in (Memory.DEVICE, Memory.PINNED)}
        device.copy(STREAM, self._whole(Memory.PINNED), self._whole(Memory.DEVICE))
        device.synchronize(STREAM)

    def _new(self, memory: Memory, *shape: int) -> Any:
        """A handle on new memory; on zeros at the host, so that its pages are there."""
        size = prod(shape)
        ordinary = memory is Memory.PAGEABLE
        tensor = torch.empty(size, dtype=torch.uint8, device="cpu") if ordinary else self._device.allocate(memory, size)
        if memory is not Memory.DEVICE:
            tensor.zero_()
        return self._device.view(memory, tensor.view(shape))

    def _whole(self, memory: Memory) -> Any:
        return self._packed[memory][0, 0:ROWS]

    def costs(self) -> Costs:
        """What a round trip takes beside what each of many copies takes is the wait."""
        device = self._device
        there, here = (self._small[memory][0, 0:1] for memory in (Memory.DEVICE, Memory.PINNED))
        trip, copy = self._once_and_each(lambda: device.copy(STREAM, there, here))
        kernels, one, row = self._kernels(), np.zeros(1, np.int64), self._packed[Memory.DEVICE][0, 0:1]
        launch = self._once_and_each(lambda: device.gather(STREAM, self._pool, one, row))[1] if kernels else 0.0
        on_device, pinned, ordinary = (self._whole(memory) for memory in (Memory.DEVICE, Memory.PINNED, Memory.PAGEABLE))
        moved = self._seconds(WHOLE, lambda: device.copy(STREAM, on_device, pinned)) - trip
        taken = self._timed(WHOLE, lambda: device.host_copy(pinned, ordinary))
        bandwidth, host_bandwidth = (ROWS * ROW_BYTES / max(seconds, LEAST) for seconds in (moved, taken))
        return Costs(
            max(trip - copy, LEAST), copy, launch, bandwidth, host_bandwidth, kernels, f"measured on {type(device).__name__}"
        )

    def _seconds(self, times: int, issue: Callable[[], None]) -> float:
        """The median time from the issue to the end of the wait behind it."""

        def trip() -> None:
            issue()
            self._device.synchronize(STREAM)

        return self._timed(times, trip)

    def _timed(self, times: int, act: Callable[[], None]) -> float:
        found = []
        for _ in range(times):
            start = perf_counter()
            act()
            found.append(perf_counter() - start)
        return median(found)

    def _once_and_each(self, issue: Callable[[], None]) -> tuple[float, float]:
        """What one takes with its wait, and what each one of many takes that are waited for together."""

        def many() -> None:
            for _ in range(MANY):
                issue()

        once = self._seconds(TRIPS, issue)
        return once, max((self._seconds(WHOLE, many) - once) / (MANY - 1), LEAST)

    def _kernels(self) -> frozenset[Memory]:
        """The memory that the device's kernels reach: it refuses the rest."""
        found = set()
        for memory, packed in self._packed.items():
            try:
                self._device.gather(STREAM, self._pool, np.zeros(1, np.int64), packed[0, 0:1])
            except DeviceError:
                continue
            found.add(memory)
        self._device.synchronize(STREAM)
        return frozenset(found)
