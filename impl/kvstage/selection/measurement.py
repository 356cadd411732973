"""The costs of a device, measured: how long its copies, kernels and waits take, in some hundredths of a second."""

from collections.abc import Callable
from math import prod
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from kvstage_model.language.buffers import Memory

from ..costs import Costs
from ..devices.device import Device
from ..errors import DeviceError

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
        """The median time from the issue to the end of the wait after it."""

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
