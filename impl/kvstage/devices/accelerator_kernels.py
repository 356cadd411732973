"""Gather and scatter on an accelerator, by torch's own index kernels, which move bits as they are.

All of it runs inside `with torch.cuda.stream(...)`, or what that is called elsewhere: what torch allocates there belongs
to that stream, and its memory is used again after the work that the stream has now.
"""

from collections import defaultdict, deque
from typing import Any

import numpy as np
import torch

from .device import Index
from .row_cache import Remembered, unchanging

_ELEMENTS = ((16, torch.complex128), (8, torch.int64), (4, torch.int32), (2, torch.int16), (1, torch.uint8))
"""Bytes of an element, and its type: the fewer elements, the faster."""

Places = tuple[torch.Tensor, torch.Tensor]
"""Slots and rows, int64 [n] each, on the accelerator."""


class AcceleratorKernels:
    """Packs and unpacks rows of pools on one device. Remembers the rows of each stream's kernels: all caches of a step have them.

    Those that are forgotten go back to the stream whose kernels read them: its later work alone gets their memory.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._places: defaultdict[Any, Remembered[Places]] = defaultdict(Remembered)
        self._packed: dict[Any, torch.Tensor] = {}
        self._uploading: deque[tuple[Any, torch.Tensor]] = deque()

    def gather(self, stream: Any, source: torch.Tensor, index: Index, target: torch.Tensor) -> None:
        """Row i of `target` [n, row_bytes] becomes row `index[i]` of the pool `source` [slots, rows, row_bytes]."""
        packed = self._scratch(stream, target) if at_host(target) else target
        pool, rows = widest(source, packed)
        torch.ops.aten.index.Tensor_out(pool, self._uploaded(stream, index, source.shape[1]), out=rows)
        if packed is not target:
            target.copy_(packed, non_blocking=True)

    def scatter(self, stream: Any, source: torch.Tensor, target: torch.Tensor, index: Index) -> None:
        """Row i of `source` [n, row_bytes] goes to row `index[i]` of the pool `target` [slots, rows, row_bytes]."""
        packed = source
        if at_host(source):
            packed = self._scratch(stream, source)
            packed.copy_(source, non_blocking=True)
        pool, rows = widest(target, packed)
        pool.index_put_(self._uploaded(stream, index, target.shape[1]), rows)

    def clear(self) -> None:
        """Lets go of all memory. The streams have ended their work."""
        self._places.clear()
        self._packed.clear()
        self._uploading.clear()

    def _scratch(self, stream: Any, like: torch.Tensor) -> torch.Tensor:
        """The stream's own memory for packed rows: its work is in order, so the next kernel comes after the last copy."""
        kept = self._packed.get(stream)
        if kept is None or kept.numel() < like.numel():
            kept = self._packed[stream] = torch.empty(like.numel(), dtype=torch.uint8, device=self._device)
        return kept[: like.numel()].view(like.shape)

    def _uploaded(self, stream: Any, index: Index, size: int) -> Places:
        """Slots and rows of an index, on the device. One that can't be written to is uploaded once."""
        if not unchanging(index):
            return self._upload(stream, index, size)
        return self._places[stream].of(index, (size,), len(index), lambda: self._upload(stream, index, size))

    def _upload(self, stream: Any, index: Index, size: int) -> Places:
        while self._uploading and self._uploading[0][0].query():
            self._uploading.popleft()
        host = torch.empty((2, len(index)), dtype=torch.int64, device="cpu", pin_memory=True)
        np.divmod(index, size, *host.numpy())
        there = torch.empty((2, len(index)), dtype=torch.int64, device=self._device)
        there.copy_(host, non_blocking=True)
        event = torch.Event(device=self._device)
        event.record(stream)
        self._uploading.append((event, host))
        return there[0], there[1]


def at_host(tensor: torch.Tensor) -> bool:
    """Whether the host addresses the tensor's memory."""
    return tensor.device.type == "cpu"


def widest(pool: torch.Tensor, packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A pool and packed rows, both uint8, in the widest element that their addresses and rows allow, sharing their memory."""
    numbers = [int(number) for number in (pool.shape[2], *pool.stride()[:2])]
    for tensor in (pool, packed):
        numbers += [tensor.data_ptr(), int(tensor.storage_offset())]
    dtype = next(dtype for size, dtype in _ELEMENTS if not any(number % size for number in numbers))
    return pool.view(dtype), packed.view(dtype)
