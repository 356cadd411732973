"""Which bytes a tensor has, and the memory that a checked device knows. Bytes are known by their address.

A device keeps all memory that it has met: else an address might be used again, and two tensors be taken for one.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from kvstage_model.language.buffers import Memory, Rows

from .byte_runs import EVERYTHING, Bytes
from .source_lines import Line

FREED = 0xDD
"""What released memory is filled with, as if another party had written there."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRegion:
    """One piece of memory: its bytes, where it lies, and the line where it was first met."""

    number: int
    memory: Memory
    bytes: Bytes
    line: Line | None

    @property
    def start(self) -> int:
        """The address of the first byte."""
        return int(self.bytes.ctypes.data)

    @property
    def rows(self) -> Rows:
        """All of it."""
        return EVERYTHING.at(0, self.start, len(self.bytes))

    def has(self, start: int, count: int) -> bool:
        """Whether `count` bytes from an address on are all of this region."""
        return self.start <= start and start + count <= self.start + len(self.bytes)


class MemoryRegions:
    """The memory that one device has met, all of it kept alive."""

    def __init__(self) -> None:
        self._regions: list[MemoryRegion] = []

    def allocate(
        self, memory: Memory, size: int, fill: int, line: Line | None, freed: Callable[[MemoryRegion], bool]
    ) -> tuple[torch.Tensor, MemoryRegion]:
        """`size` new bytes. When the last that shares them is gone, `freed` is called, and says whether they become FREED."""
        owner = np.full(size, fill, np.uint8)
        region = self._add(memory, owner, line)
        lent = owner.view(_Lent)  # the tensor's storage holds this array alone: it goes when the storage does
        ends = weakref.finalize(lent, _release, region, freed)
        ends.atexit = False
        return torch.from_numpy(lent), region

    def meet(self, memory: Memory, tensor: torch.Tensor, line: Line | None) -> None:
        """Makes the memory of a plain tensor known, if it isn't."""
        storage = tensor.untyped_storage()
        if storage.nbytes() and self.find(storage.data_ptr(), storage.nbytes()) is None:
            every_byte = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._add(memory, every_byte.numpy(), line)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the memory of a plain tensor is known. Tensors without a byte are not."""
        return self.find(tensor.data_ptr(), tensor.element_size()) is not None if tensor.numel() else False

    def find(self, start: int, count: int) -> MemoryRegion | None:
        """The region that has `count` bytes from an address on."""
        return next((region for region in self._regions if region.has(start, count)), None)

    def mirror(self, tensor: torch.Tensor) -> Bytes:
        """An array on the bytes of a plain uint8 tensor of known memory. It does not keep lent memory from being freed."""
        region, shape = self.find(tensor.data_ptr(), 1), tuple(tensor.shape)
        if region is None or not tensor.numel():
            return np.empty(shape, np.uint8)
        return np.lib.stride_tricks.as_strided(region.bytes[tensor.data_ptr() - region.start :], shape, tensor.stride())

    def _add(self, memory: Memory, array: Bytes, line: Line | None) -> MemoryRegion:
        region = MemoryRegion(len(self._regions), memory, array, line)
        self._regions.append(region)
        return region


class _Lent(np.ndarray):
    """An array that others hold: unlike its base, it goes when it is not held any more."""


def _release(region: MemoryRegion, freed: Callable[[MemoryRegion], bool]) -> None:
    if freed(region):
        region.bytes[:] = FREED
