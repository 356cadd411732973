"""Host memory that OpenCL reads and writes where it lies: one memory object for each storage of torch."""

from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import DeviceError
from .driver import Driver


class HostMemory:
    """All bytes of a storage, and the memory object over them. It keeps the storage alive."""

    __slots__ = ("__weakref__", "buffer", "bytes")

    def __init__(self, whole: NDArray[np.uint8], buffer: Any) -> None:
        self.bytes = whole
        self.buffer = buffer


class OpenCLRows:
    """Rows in a `HostMemory`: as a numpy view for the host, as an offset in bytes for the device."""

    __slots__ = ("array", "memory", "offset")

    def __init__(self, memory: HostMemory, array: NDArray[np.uint8], offset: int) -> None:
        self.memory = memory
        self.array = array
        self.offset = offset

    def __getitem__(self, run: tuple[int, slice]) -> "OpenCLRows":
        slot, rows = run
        stride, row = self.array.strides[:2]
        return OpenCLRows(self.memory, self.array[slot, rows], self.offset + slot * stride + rows.start * row)


class MemoryObjects:
    """The memory objects in use. Two of them over the same bytes would be undefined in OpenCL, so each storage has one."""

    def __init__(self, driver: Driver) -> None:
        self._cl = driver.cl
        self._context = driver.context
        self._known: WeakValueDictionary[tuple[int, int], HostMemory] = WeakValueDictionary()

    def region(self, tensor: torch.Tensor) -> OpenCLRows:
        """All of a uint8 CPU tensor. Raises DeviceError if its storage is larger than the driver's memory objects may be."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr(), storage.nbytes()
        memory = self._known.get(key)
        if memory is None:
            memory = self._known[key] = self._over(storage)
        return OpenCLRows(memory, tensor.numpy(), int(tensor.storage_offset()))

    def _over(self, storage: torch.UntypedStorage) -> HostMemory:
        whole: NDArray[np.uint8] = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy()
        flags = self._cl.mem_flags
        try:
            buffer = self._cl.Buffer(self._context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=whole)
        except self._cl.Error as error:
            (device,) = self._context.devices
            raise DeviceError(
                f"OpenCL takes no memory object of {len(whole)} bytes ({error}; the most is {device.max_mem_alloc_size}): "
                "a pool that is part of a larger tensor counts with all of it, so give it a tensor of its own"
            ) from error
        return HostMemory(whole, buffer)
