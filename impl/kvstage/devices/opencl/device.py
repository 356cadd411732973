"""A driver that was not written here: host memory, moved by OpenCL on in-order command queues, one a stream.

It needs pyopencl and a driver for the CPU, such as PoCL (`pip install "kvstage[opencl]"`); neither is loaded before an
`OpenCLDevice` is made. Work is really asynchronous: what a scheme forgets to wait for is seen as wrong bytes here.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import torch

from kvstage_model.language.buffers import Memory

from ...errors import ClosedError, DeviceError
from ..device import Index
from ..fork_check import check_process
from ..held_work import HeldWork
from ..left_behind import left_behind
from ..lock import lock_of
from ..named_streams import NamedStreams
from ..timing import Timing
from .driver import find
from .kernels import Mover
from .memory import MemoryObjects, OpenCLRows
from .queue import Mark, Queue, UserEventGate


class OpenCLEvent:
    """An event of an `OpenCLDevice`: it knows its last record."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Mark | None = None


class OpenCLDevice(Timing, NamedStreams):
    """Moves host memory to host memory by an OpenCL driver. Pools must be CPU tensors; DEVICE memory is host memory too.

    Memory is used where it lies (CL_MEM_USE_HOST_PTR on a device that shares the host's memory): kernels read and write
    pinned rows themselves, and the host sees them once it has waited. A context manager: leaving it closes the device.
    `copies`, `launches` (kernels) and `waits` (those that may block the host) count what was asked for since it was made.
    Waits can be interrupted. A failure is raised by each wait for the first event recorded after it.
    What `timed` gives are the driver's own times. Tensors are written unseen by their version counters.

    Raises OpenCLMissingError if there is no pyopencl or no driver for the CPU; ForkedError if it is used in a process
    that was forked after it was made: the driver's threads are in the parent alone.
    """

    keeps_errors = True

    def __init__(self) -> None:
        self.copies = 0
        self.launches = 0
        self.waits = 0
        self.closed = False
        self._process = os.getpid()
        self._driver = find()
        self._mover = Mover(self._driver)
        self._memories = MemoryObjects(self._driver)
        self._queues: dict[str, Queue] = {}
        self._forgetting = threading.Lock()
        self._hold: HeldWork[UserEventGate] | None = None
        self._number = 0
        self._holds: list[HeldWork[UserEventGate]] = []
        weakref.finalize(
            self, _finish, self._process, self._queues, self._holds
        )  # what is under way may touch memory that it keeps

    def view(self, memory: Memory, tensor: torch.Tensor) -> OpenCLRows:
        """A handle on a CPU tensor, whatever the kind of memory. Raises DeviceError for other tensors."""
        if tensor.device.type != "cpu":
            raise DeviceError(f"OpenCLDevice copies CPU tensors, and this one is on {tensor.device}: use a device for that memory")
        self._check_open()
        return self._memories.region(tensor)

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Host memory, not initialised."""
        self._check_open()
        return torch.empty(size, dtype=torch.uint8, device="cpu")

    def copy(self, stream: str, source: OpenCLRows, target: OpenCLRows) -> None:
        """Enqueues a copy. Raises DeviceError if the two sides differ in size."""
        size = source.array.nbytes
        if size != target.array.nbytes:
            raise DeviceError(f"a copy of {size} bytes to {target.array.nbytes} bytes: both sides must have the same shape")
        queue, number, wait_for = self._next_work(stream)
        if size:
            ends = {"byte_count": size, "src_offset": source.offset, "dst_offset": target.offset}
            event = self._driver.cl.enqueue_copy(
                queue.commands, target.memory.buffer, source.memory.buffer, wait_for=wait_for, **ends
            )
        else:  # which OpenCL refuses to copy
            event = self._driver.cl.enqueue_marker(queue.commands, wait_for=wait_for)
        self._put(queue, number, event, source, target)
        self.copies += 1

    def gather(self, stream: str, source: OpenCLRows, index: Index, target: OpenCLRows) -> None:
        """Enqueues a kernel that packs rows of a pool. Raises DeviceError if a number is no row of it."""
        queue, number, wait_for = self._next_work(stream)
        event, listed = self._mover.gather(queue.commands, source, index, target, wait_for)
        self._put(queue, number, event, source, target, listed)
        self.launches += 1

    def scatter(self, stream: str, source: OpenCLRows, target: OpenCLRows, index: Index) -> None:
        """Enqueues a kernel that unpacks rows into a pool. Raises DeviceError if a number is no row of it."""
        queue, number, wait_for = self._next_work(stream)
        event, listed = self._mover.scatter(queue.commands, source, target, index, wait_for)
        self._put(queue, number, event, source, target, listed)
        self.launches += 1

    def host_copy(self, source: OpenCLRows, target: OpenCLRows) -> None:
        """Copies at once, on the calling thread."""
        np.copyto(target.array, source.array)

    def synchronize(self, stream: str) -> None:
        """Waits for all that was enqueued on the stream; lets go of what is held there first, or it would wait for ever."""
        self._check_open()
        self.waits += 1
        queue = self._queues.get(stream)
        if queue and queue.last:
            number = self._next()
            self._let_go(stream, number)
            self._wait(queue.put(number, self._driver.cl.enqueue_marker(queue.commands), (), None, ends=True))
            queue.commands.finish()  # which has nothing left to wait for

    def event(self) -> OpenCLEvent:
        """A new event."""
        return OpenCLEvent()

    def record(self, event: OpenCLEvent, stream: str) -> None:
        """Enqueues a marker; it is the event's last record at once."""
        self._check_open()
        queue = self._queue(stream)
        marker = self._driver.cl.enqueue_marker(queue.commands)
        event.last = queue.put(self._next(), marker, (), self._span(queue.name), ends=True)

    def wait_event(self, stream: str, event: OpenCLEvent) -> None:
        """Enqueues a barrier that waits for the marker that is the event's last record now, if there is one."""
        self._check_open()
        queue, number, last = self._queue(stream), self._next(), event.last
        barrier = self._driver.cl.enqueue_barrier(queue.commands, wait_for=[last.event] if last else [])
        self._put(queue, number, barrier)
        if last and self._hold:
            self._hold.waits(stream, number, last)

    def wait(self, event: OpenCLEvent) -> None:
        """Waits for the event's last record; lets go of what is held before it, or it would wait for ever."""
        check_process(self._process)
        self.waits += 1
        if event.last:
            self._let_go(event.last.stream, event.last.number)
            self._wait(event.last)

    def query(self, event: OpenCLEvent) -> bool:
        """Whether the event's last record has ended. Lets go of nothing that is held."""
        check_process(self._process)
        if event.last is None:
            return True
        if event.last.status > 0:
            return False
        self._check(event.last)
        return True

    @contextmanager
    def hold(self, which: Callable[[str, int], bool]) -> Iterator[HeldWork[UserEventGate]]:
        """For tests: keeps back the work for which `which(stream, index)` holds, until the host waits for it.

        `index` counts copies and kernels from the `with` on, over all streams. As `ThreadDevice.hold`, with a user event
        for each piece of work. One hold at a time.
        """
        if self._hold:
            raise DeviceError("this device is held already: leave the first hold before the next")
        driver = self._driver
        self._hold = hold = HeldWork(which, lambda: UserEventGate(driver))
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._hold = None
            self._holds.remove(hold)
            hold.release()

    def close(self) -> None:
        """Finishes all work. Raises the first error that has not been waited for."""
        check_process(self._process)
        with lock_of(self):  # no call is between its look at `closed` and its work
            self.closed = True
        if self._hold:
            self._hold.release()
        for queue in self._queues.values():
            if queue.last:
                queue.last.block()
        self._forget()
        queues = list(self._queues.values())
        self._queues.clear()
        left_behind(self).clear()
        for queue in queues:
            queue.check_all()

    def __enter__(self) -> "OpenCLDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _next_work(self, stream: str) -> tuple[Queue, int, list[Any]]:
        """The queue of new work, its number, and the events that it waits for."""
        self._check_open()
        queue, number = self._queue(stream), self._next()
        gate = self._hold.gate(stream, number) if self._hold else None
        return queue, number, [gate.event] if gate else []

    def _put(self, queue: Queue, number: int, event: Any, *operands: object) -> Mark:
        return queue.put(number, event, operands, self._span(queue.name))

    def _let_go(self, stream: str, number: int) -> None:
        if self._hold:
            self._hold.let_go(stream, number)

    def _wait(self, mark: Mark) -> None:
        mark.block()
        self._check(mark)

    def _check(self, mark: Mark) -> None:
        self._forget()
        mark.queue.check(mark)  # also after the end of the device

    def _forget(self) -> None:
        with self._forgetting:
            for queue in list(self._queues.values()):
                queue.forget()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _queue(self, stream: str) -> Queue:
        queue = self._queues.get(stream)
        if queue is None:
            cl = self._driver.cl
            commands = cl.CommandQueue(self._driver.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            queue = self._queues[stream] = Queue(stream, commands)
        return queue

    def _check_open(self) -> None:
        check_process(self._process)
        if self.closed:
            raise ClosedError("this OpenCLDevice is closed: make a new one, or move the call into its `with`")


def _finish(process: int, queues: dict[str, Queue], holds: list[HeldWork[UserEventGate]]) -> None:
    """Ends the work of a device that was dropped, or at the interpreter's end: also what a hold that was never left keeps back."""
    if os.getpid() == process:
        for hold in holds:
            hold.release()
        for queue in queues.values():
            if queue.last:
                queue.last.block()
