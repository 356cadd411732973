"""What the library asks of a device. A device of your own needs these methods and nothing else.

Operands are a device's own handles on uint8 memory, of one type `B`: numpy arrays if the host can address the
memory (their views are the cheapest), tensors on an accelerator. `view` makes one, [slots, rows, row_bytes], and the
library takes runs of rows from it with `handle[slot, start:stop]`, a view [stop - start, row_bytes] whose bytes lie
side by side. Source and target of a copy always have the same shape, and never overlap.

The guarantees are those of `kvstage_model.ordering.axioms`, no less: a stream does its work in order, and each piece reads its
source and writes its target at any time after it was issued. Schemes are proved under just that, so a device that does
more at once, or waits more often, is right too. Streams are known by name and come into being when first used; events
are objects of a type `E` that `event` makes. An event may be recorded again and again: the last record before a wait or
a query is the one that counts, and one that was never recorded holds nothing up.

Work is issued by one host thread at a time, which `devices.lock.lock_of` sees to: so a device can be hashed, and referred to
weakly, as ordinary objects can. `wait` and `query` may be called by any thread, meanwhile.

A device may state its `costs`, a `kvstage.costs.Costs`: the others are measured, for `scheme="auto"`. It may state
`keeps_errors = True`: each event whose last record comes after failed work raises what went wrong at each wait and query, and
no other event does. If it doesn't, an error from one wait means that all that is under way may have failed.
"""

from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.language.buffers import Memory

B = TypeVar("B")
E = TypeVar("E")

Index: TypeAlias = NDArray[np.int64]
"""Rows of a pool [slots, rows, row_bytes] by number, in the order of the transfer: row `r` of slot `s` is s * rows + r.
All are inside the pool: the library has looked."""


class Device(Protocol[B, E]):
    """Moves bytes, asynchronously, on streams."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called; all methods but `close`, `wait` and `query` then raise ClosedError."""
        ...  # pragma: no cover

    def view(self, memory: Memory, tensor: torch.Tensor) -> B:
        """A handle on a uint8 tensor [slots, rows, row_bytes], sharing its memory.

        Raises DeviceError if the tensor is not in that kind of memory, or can't be reached from this device.
        """
        ...  # pragma: no cover

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """`size` new bytes, uint8 [size], that `view` takes for the same kind of memory. Freed as tensors are."""
        ...  # pragma: no cover

    def copy(self, stream: str, source: B, target: B) -> None:
        """Puts a copy on a stream and goes on. An error in it is raised by the next wait that covers it."""
        ...  # pragma: no cover

    def gather(self, stream: str, source: B, index: Index, target: B) -> None:
        """Puts a kernel on a stream: row i of `target` [n, row_bytes] is row `index[i]` of the pool `source`."""
        ...  # pragma: no cover

    def scatter(self, stream: str, source: B, target: B, index: Index) -> None:
        """Puts a kernel on a stream: row i of `source` [n, row_bytes] goes to row `index[i]` of the pool `target`."""
        ...  # pragma: no cover

    def host_copy(self, source: B, target: B) -> None:
        """Copies on the calling thread, between memory that the host addresses, and is done on return."""
        ...  # pragma: no cover

    def synchronize(self, stream: str) -> None:
        """Returns after everything that was put on the stream before has ended; at once if that is nothing."""
        ...  # pragma: no cover

    def event(self) -> E:
        """A new event, never recorded."""
        ...  # pragma: no cover

    def record(self, event: E, stream: str) -> None:
        """Marks what was put on the stream so far."""
        ...  # pragma: no cover

    def wait_event(self, stream: str, event: E) -> None:
        """What is put on the stream from now on begins after what the event's last record marks. The host goes on."""
        ...  # pragma: no cover

    def order_after(self, stream: str, after: object) -> None:
        """What is put on the stream from now on begins after what the caller has under way. The host goes on.

        `after` is an event, of `event` too, or a stream for all that is on it now, as callers of this device have them;
        None is the stream that the calling thread works on, if the device knows one, and orders nothing else. Raises
        DeviceError for anything else. `NamedStreams` has this and the next method for callers that name the device's own streams.
        """
        ...  # pragma: no cover

    def order_before(self, event: E, stream: object) -> None:
        """What the caller puts on a stream of its own from now on begins after what the event marks. The host goes on.

        None is the stream that the calling thread works on. Raises DeviceError if there is no such stream.
        """
        ...  # pragma: no cover

    def wait(self, event: E) -> None:
        """Returns after what the event's last record marks has ended. Raises what went wrong in it."""
        ...  # pragma: no cover

    def query(self, event: E) -> bool:
        """Whether what the event's last record marks has ended. Never blocks; raises what went wrong in it."""
        ...  # pragma: no cover

    def close(self) -> None:
        """Finishes all work and lets go of threads and memory. May be called twice, and again after an interrupt."""
        ...  # pragma: no cover
