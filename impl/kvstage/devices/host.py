"""The device for memory that the host addresses: a CPU's own caches, or unified memory. Everything is done at once.

There is nothing to wait for, so no schedule of the axioms is left out but the one where each piece of work ends before
the call that asks for it returns; a scheme that is proved is right here with the rest. "gather_host" is what it is for:
one kernel between the pool and the caller's own memory, no staging, near the speed of a flat copy.
"""

from types import TracebackType

import torch

from kvstage_model.language.buffers import Memory

from ..costs import HOST
from ..errors import ClosedError, DeviceError
from .device import Index
from .host_kernels import Bytes, HostKernels
from .left_behind import left_behind
from .lock import lock_of
from .named_streams import NamedStreams, PlainEvent


class HostDevice(NamedStreams):
    """Moves CPU tensors on the calling thread. Every kind of memory is host memory; streams and events are names only.

    A context manager: leaving it closes the device. `copies`, `launches` (kernels) and `waits` (those that may block the
    host elsewhere; here none does) count what was asked for since it was made. What goes wrong is raised by the call
    itself, not by a wait after it. Tensors are written through numpy, unseen by their version counters.
    """

    costs = HOST
    keeps_errors = True

    def __init__(self) -> None:
        self.copies = 0
        self.launches = 0
        self.waits = 0
        self.closed = False
        self._kernels = HostKernels()

    def view(self, memory: Memory, tensor: torch.Tensor) -> Bytes:
        """A numpy view of a CPU tensor, whatever the kind of memory. Raises DeviceError for other tensors."""
        if not tensor.is_cpu:
            raise DeviceError(f"HostDevice moves CPU tensors, and this one is on {tensor.device}: use a device for that memory")
        array: Bytes = tensor.numpy()
        return array

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Host memory, not initialised."""
        self._check_open()
        return torch.empty(size, dtype=torch.uint8)

    def copy(self, stream: str, source: Bytes, target: Bytes) -> None:
        """Copies at once."""
        self._check_open()
        target[...] = source
        self.copies += 1

    def gather(self, stream: str, source: Bytes, index: Index, target: Bytes) -> None:
        """Packs rows of a pool at once."""
        self._check_open()
        self._kernels.gather(source, index, target)
        self.launches += 1

    def scatter(self, stream: str, source: Bytes, target: Bytes, index: Index) -> None:
        """Unpacks rows into a pool at once."""
        self._check_open()
        self._kernels.scatter(source, target, index)
        self.launches += 1

    def host_copy(self, source: Bytes, target: Bytes) -> None:
        """Copies at once."""
        target[...] = source

    def synchronize(self, stream: str) -> None:
        """Nothing is under way."""
        self._check_open()
        self.waits += 1

    def event(self) -> object:
        """A new event."""
        return PlainEvent()

    def record(self, event: object, stream: str) -> None:
        """Everything before has ended."""
        self._check_open()

    def wait_event(self, stream: str, event: object) -> None:
        """Everything before has ended."""
        self._check_open()

    def wait(self, event: object) -> None:
        """Everything before has ended."""
        self.waits += 1

    def query(self, event: object) -> bool:
        """True: everything before has ended."""
        return True

    def close(self) -> None:
        """Refuses new work; there is no other left."""
        with lock_of(self):  # a call in another thread comes to its end
            self.closed = True
        left_behind(self).clear()

    def __enter__(self) -> "HostDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("this HostDevice is closed: make a new one, or move the call into its `with`")
