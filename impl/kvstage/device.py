"""What the library asks of a device: six methods. A device of your own needs these and nothing else.

Operands are a device's own handles on uint8 memory, of one type `B`: numpy arrays where the host can address the
memory (their views are the cheapest), tensors on an accelerator. `view` makes one, [slots, rows, row_bytes], and the
library takes runs of rows from it with `handle[slot, start:stop]`, a view [stop - start, row_bytes] whose bytes lie
side by side. Source and target of a copy always have the same shape, and never overlap.

The guarantees are those of `kvstage_model.axioms`, no less: a stream does its work in order, and each piece reads its
source and writes its target at any time after it was issued. Schemes are proved under just that, so a device that does
more at once, or waits more often, is right too. Streams are known by name and come into being when first used.
"""

from typing import Protocol, TypeVar

import torch

from kvstage_model.operations import Memory

B = TypeVar("B")


class Device(Protocol[B]):
    """Copies bytes, asynchronously, on streams. Used by one host thread at a time."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called; all methods but `close` then raise ClosedError."""
        ...  # pragma: no cover

    def view(self, memory: Memory, tensor: torch.Tensor) -> B:
        """A handle on a uint8 tensor [slots, rows, row_bytes], sharing its memory.

        Raises DeviceError where the tensor is not in that kind of memory, or can't be reached from this device.
        """
        ...  # pragma: no cover

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """`size` new bytes, uint8 [size], that `view` takes for the same kind of memory. Freed as tensors are."""
        ...  # pragma: no cover

    def copy(self, stream: str, source: B, target: B) -> None:
        """Puts a copy on a stream and goes on. An error in it is raised by the next `synchronize` of that stream."""
        ...  # pragma: no cover

    def host_copy(self, source: B, target: B) -> None:
        """Copies on the calling thread, between memory that the host addresses, and is done on return."""
        ...  # pragma: no cover

    def synchronize(self, stream: str) -> None:
        """Returns after everything that was put on the stream before has ended; at once where that is nothing."""
        ...  # pragma: no cover

    def close(self) -> None:
        """Finishes all work and lets go of threads and memory. May be called twice."""
        ...  # pragma: no cover
