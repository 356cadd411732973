"""The device for accelerators that torch drives: CUDA first; ROCm has the same interface, and XPU its own with the same names.

Every stream of a scheme is a side stream. A call begins after what the caller has on its current stream, by an event,
and the host waits for an event or a stream of this device: never for the whole device, and never if the scheme has no
wait. What keeps memory alive while a side stream touches it, where torch's allocator would not:

- the caller's pool and rows: the library holds them until the host has seen the end of the work, so no `record_stream`;
- device memory of schemes: it comes from a stream that nothing else runs on, so no kernel of the caller's may still have
  work in a block that the caller has freed, and the library uses it again only after the end of the work;
- packed rows and row numbers: they belong to the side stream that uses them, which is in order;
- the pinned memory that row numbers come from: held until an event after their upload.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import torch

from kvstage_model.language.buffers import Memory

from ..errors import ClosedError, DeviceError
from .accelerator_kernels import AcceleratorKernels, at_host
from .device import Index
from .fork_check import check_process
from .left_behind import left_behind
from .lock import lock_of


class AcceleratorDevice:
    """Moves rows between an accelerator's memory and pinned host memory. `device` is torch's; None is the current one.

    DEVICE memory is on that device; PINNED memory is page-locked, also the caller's own; `after` and `wait_stream` take
    torch's streams and events of that device. Pools must be on the device. "gather_host" is refused: kernels here do not
    reach ordinary host memory, and "gather_pinned" packs rows on the device and moves them in one copy. Waits can't be
    interrupted.

    A context manager: leaving it closes the device. `copies`, `launches` (kernels) and `waits` (those that may block the
    host) count what was asked for since it was made. Raises DeviceError if there is no such accelerator; ForkedError if it
    is used in a process that was forked after it was made.
    """

    keeps_errors = True
    """As drivers do: after a failure every call raises it."""

    def __init__(self, device: torch.device | str | None = None) -> None:
        self.device = _accelerator(device)
        self.copies = 0
        self.launches = 0
        self.waits = 0
        self.closed = False
        self._process = os.getpid()
        self._torch: Any = torch.get_device_module(self.device)
        self._kernels = AcceleratorKernels(self.device)
        self._streams: dict[str, Any] = {}
        self._memory = self._torch.Stream(device=self.device)

    def view(self, memory: Memory, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor itself. Raises DeviceError if it is not in that kind of memory, or on another device."""
        wanted = {Memory.DEVICE: f"on {self.device}", Memory.PINNED: "in pinned host memory", Memory.PAGEABLE: "on the CPU"}
        if memory is Memory.DEVICE:
            fits = tensor.device == self.device
        else:
            fits = tensor.device.type == "cpu" and (memory is Memory.PAGEABLE or tensor.is_pinned())
        if not fits:
            raise DeviceError(f"the tensor is on {tensor.device}, not {wanted[memory]}: move it there, or use .pin_memory()")
        return tensor

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Not initialised: on the device, from a stream that nothing else runs on; or pinned; or ordinary host memory."""
        self._check_open()
        if memory is not Memory.DEVICE:
            return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=memory is Memory.PINNED)
        with self._torch.stream(self._memory):
            return torch.empty(size, dtype=torch.uint8, device=self.device)

    def copy(self, stream: str, source: torch.Tensor, target: torch.Tensor) -> None:
        """Puts a copy on the stream."""
        with self._on(stream):
            target.copy_(source, non_blocking=True)
        self.copies += 1

    def gather(self, stream: str, source: torch.Tensor, index: Index, target: torch.Tensor) -> None:
        """Puts a kernel on the stream that packs rows, and a copy after it if the target is pinned memory."""
        self._refuse_pageable(target)
        with self._on(stream) as on:
            self._kernels.gather(on, source, index, target)
        self.launches += 1

    def scatter(self, stream: str, source: torch.Tensor, target: torch.Tensor, index: Index) -> None:
        """Puts a kernel on the stream that unpacks rows, and a copy before it if the source is pinned memory."""
        self._refuse_pageable(source)
        with self._on(stream) as on:
            self._kernels.scatter(on, source, target, index)
        self.launches += 1

    def host_copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copies at once, on the calling thread."""
        np.copyto(target.numpy(), source.numpy())

    def synchronize(self, stream: str) -> None:
        """Waits for all that was put on the stream."""
        self._check_open()
        self.waits += 1
        if stream in self._streams:
            self._streams[stream].synchronize()

    def event(self) -> Any:
        """A new `torch.Event`."""
        return torch.Event(device=self.device)

    def record(self, event: Any, stream: str) -> None:
        """Marks what is on the stream."""
        event.record(self._stream(stream))

    def wait_event(self, stream: str, event: Any) -> None:
        """The stream goes on after the event's last record."""
        event.wait(self._stream(stream))

    def order_after(self, stream: str, after: object) -> None:
        """The stream goes on after an event, or all that is now on a stream, of torch's; None is the current stream.

        Raises DeviceError for anything else.
        """
        own = self._stream(stream)
        if after is None or isinstance(after, torch.Stream):
            event = self.event()
            event.record(self._torch.current_stream(self.device) if after is None else after)
            event.wait(own)
        elif all(callable(getattr(after, name, None)) for name in ("record", "wait", "query")):
            event_of_the_caller: Any = after  # torch.Event, or an Event of torch.cuda: they have no type in common
            event_of_the_caller.wait(own)
        else:
            raise DeviceError(f"after is a {type(after).__name__}: it must be one of torch's streams or events")

    def order_before(self, event: Any, stream: object) -> None:
        """A stream of torch's, or the current one for None, goes on after the event. Raises DeviceError for anything else."""
        if stream is not None and not isinstance(stream, torch.Stream):
            raise DeviceError(f"stream is a {type(stream).__name__}: it must be one of torch's streams")
        event.wait(self._torch.current_stream(self.device) if stream is None else stream)

    def wait(self, event: Any) -> None:
        """Waits for the event's last record."""
        check_process(self._process)
        self.waits += 1
        event.synchronize()

    def query(self, event: Any) -> bool:
        """Whether the event's last record has ended."""
        check_process(self._process)
        return bool(event.query())

    def close(self) -> None:
        """Waits for this device's own streams, and lets go of them and of their memory."""
        check_process(self._process)
        with lock_of(self):  # no call is between its look at `closed` and its work
            self.closed = True
        for stream in self._streams.values():
            stream.synchronize()
        self._streams.clear()
        self._kernels.clear()
        left_behind(self).clear()

    def __enter__(self) -> "AcceleratorDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _on(self, stream: str) -> Iterator[Any]:
        """What torch does inside goes to the stream; tensors of inference mode may be written, and autograd sees nothing."""
        on = self._stream(stream)
        with torch.inference_mode(), self._torch.stream(on):
            yield on

    def _stream(self, name: str) -> Any:
        self._check_open()
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = self._torch.Stream(device=self.device)
        return found

    def _refuse_pageable(self, tensor: torch.Tensor) -> None:
        if at_host(tensor) and not tensor.is_pinned():
            raise DeviceError(
                "the rows are in ordinary host memory, which kernels of this device don't reach: "
                "choose the scheme 'gather_pinned' and pinned rows, or 'gather'"
            )

    def _check_open(self) -> None:
        check_process(self._process)
        if self.closed:
            raise ClosedError("this AcceleratorDevice is closed: make a new one, or move the call into its `with`")


def _accelerator(device: torch.device | str | None) -> torch.device:
    """The device with its index. Raises DeviceError if there is none."""
    found = torch.accelerator.current_accelerator() if device is None else torch.device(device)
    if found is None or not torch.accelerator.is_available() or found.type != _type_of_accelerator():
        raise DeviceError(f"torch has no accelerator {device or ''} here: use HostDevice, or ThreadDevice for tests, on the CPU")
    return torch.device(found.type, torch.get_device_module(found).current_device()) if str(found) == found.type else found


def _type_of_accelerator() -> str:
    accelerator = torch.accelerator.current_accelerator()
    return "" if accelerator is None else accelerator.type
