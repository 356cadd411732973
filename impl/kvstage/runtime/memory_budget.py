"""Memory that a stager has allocated: kept between calls, counted against its budget, given out again when it is free."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from kvstage_model.language.buffers import Memory

from ..devices.device import Device
from ..errors import AllocationError, KVStageError, PinnedMemoryError, shown

GROWTH = 8
"""A result's memory is rounded up to the next eighth of a power of two: a history that grows by a row a step needs new
memory only now and then."""


class Loan:
    """Memory on loan from a `Buffers`: `tensor` is uint8, with at least the bytes that were asked for."""

    __slots__ = ("_buffers", "_lock", "memory", "tensor")

    def __init__(self, buffers: "Buffers", memory: Memory, tensor: torch.Tensor) -> None:
        self._buffers: Buffers | None = buffers
        self._lock = threading.Lock()
        self.memory = memory
        self.tensor = tensor

    def give_back(self) -> None:
        """Nothing touches it any more. A second time does nothing."""
        with self._lock:
            buffers, self._buffers = self._buffers, None
        if buffers is not None:
            buffers.take_back(self.memory, self.tensor)


class Buffers:
    """Allocates from a device and keeps what comes back. Any thread may use it.

    `pinned_bytes` bounds the pinned memory of this stager that exists at one time: staging, results, and what is kept for
    the next call. A result that is not released counts until its last tensor is gone.
    """

    def __init__(self, device: Device[Any, Any], pinned_bytes: int | None) -> None:
        self._device = device
        self._budget = pinned_bytes
        self._kept: dict[Memory, list[torch.Tensor]] = {memory: [] for memory in Memory}
        self._pinned = 0
        self._closed = False
        self._recallable: Callable[[], int] = lambda: 0
        self._recall: Callable[[], object] = lambda: None
        self._freed: deque[int] = deque()  # filled by finalizers, which may run in the midst of anything
        self._lock = threading.RLock()
        self._process = os.getpid()

    def take(self, memory: Memory, size: int, *, grows: bool = False) -> Loan:
        """At least `size` bytes, not initialised; a little more if the next call will need more (`grows`).

        Raises PinnedMemoryError if the budget does not allow it, AllocationError if the device has no more.
        """
        with self._lock:
            kept = self._kept[memory]
            fitting = _smallest(kept, size)
            if fitting is None and memory is Memory.PINNED and self._short_of(size):
                self._recall()
                fitting = _smallest(kept, size)
            if fitting is None:
                return Loan(self, memory, self._new(memory, size, grows))
            _remove(kept, fitting)
            return Loan(self, memory, fitting)

    def take_back(self, memory: Memory, tensor: torch.Tensor) -> None:
        """Keeps memory for the next call that needs as much, if there will be one.

        But no device memory, which a stream may still be at work on, and keeps: only what is put after that may use it.
        """
        if os.getpid() != self._process:  # a child of the one that it was taken in, where the lock may be held for ever
            return
        with self._lock:
            if not self._closed and memory is not Memory.DEVICE:
                self._kept[memory].append(tensor)

    def close(self) -> None:
        """Lets go of all that is kept, and of what comes back from now on."""
        with self._lock:
            self._closed = True
            for kept in self._kept.values():
                kept.clear()

    def may_recall(self, pinned: Callable[[], int], recall: Callable[[], object]) -> None:
        """`recall` gives back memory on loan that is not used, if the budget is short of it: `pinned` bytes of it are pinned."""
        self._recallable, self._recall = pinned, recall

    @property
    def left(self) -> int | None:
        """Bytes of pinned memory that a call can have, what is idle included; None if there is no budget."""
        if self._budget is None:
            return None
        with self._lock:
            return self._budget - self.pinned + sum(map(len, self._kept[Memory.PINNED])) + self._recallable()

    @property
    def pinned(self) -> int:
        """Bytes of pinned memory that exist now."""
        while self._freed:
            self._pinned -= self._freed.popleft()
        return self._pinned

    def _short_of(self, size: int) -> bool:
        kept = sum(map(len, self._kept[Memory.PINNED]))
        return self._budget is not None and self.pinned - kept + size > self._budget

    def _new(self, memory: Memory, size: int, grows: bool) -> torch.Tensor:
        kept = self._kept[memory]
        if kept:  # all are too small: one makes way, so that a growing history does not leave a trail of them
            _remove(kept, max(kept, key=len))
        rounded = _rounded(size) if grows else size
        if memory is Memory.PINNED and self._budget is not None:
            while kept and self.pinned + size > self._budget:
                kept.pop()
            left = self._budget - self.pinned
            if size > left:
                raise PinnedMemoryError(size, left, self._budget)
            rounded = min(rounded, left)
        # what is kept serves later calls too, whatever mode and default device they are made in
        with torch.inference_mode(False), torch.device("cpu"):
            try:
                tensor = self._device.allocate(memory, rounded)
            except KVStageError:
                raise
            except (MemoryError, RuntimeError, OverflowError, TypeError) as error:  # torch has all of them for too much memory
                raise AllocationError(
                    f"the device allocates no {shown(rounded)} bytes of {memory.name.lower()} memory ({error}): move fewer rows at "
                    "once, use fewer slots, or release transfers whose rows you have used"
                ) from error
        if memory is Memory.PINNED:
            self._pinned += rounded
            weakref.finalize(tensor.untyped_storage(), self._freed.append, rounded).atexit = False
        return tensor


def _rounded(size: int) -> int:
    step = max(1, (1 << (size.bit_length() - 1)) // GROWTH)
    return -(-size // step) * step


def _smallest(kept: list[torch.Tensor], size: int) -> torch.Tensor | None:
    return min((each for each in kept if len(each) >= size), key=len, default=None)


def _remove(kept: list[torch.Tensor], tensor: torch.Tensor) -> None:
    """By identity: `==` of tensors compares their elements."""
    del kept[next(k for k, each in enumerate(kept) if each is tensor)]
