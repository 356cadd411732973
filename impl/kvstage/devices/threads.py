"""A really asynchronous device without hardware: host memory, and one worker thread a stream.

Work is queued, and the worker does it some time later, so a scheme that forgets a wait reads stale bytes here as on
an accelerator. Tests make that certain with `hold`.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch

from kvstage_model.language.buffers import Memory

from ..errors import ClosedError, DeviceError
from .device import Index
from .fork_check import check_process
from .held_work import HeldWork
from .host_kernels import Bytes, HostKernels
from .left_behind import left_behind
from .lock import lock_of
from .named_streams import NamedStreams
from .thread_worker import Record, Worker
from .timing import Timing


class ThreadEvent:
    """An event of a `ThreadDevice`: it knows its last record."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Record | None = None


class ThreadDevice(Timing, NamedStreams):
    """Moves host memory to host memory on worker threads. Pools must be CPU tensors; DEVICE memory is host memory too.

    A context manager: leaving it closes the device. `copies`, `launches` (kernels) and `waits` (those that may block
    the host) count what was asked for since it was made. After an error, a stream skips what was queued after it
    before a wait or a query has raised the error, and each event recorded after skipped work raises it, too; in what
    `timed` gives, the times of what was skipped stay 0. What is queued keeps its memory alive. At the end of the process
    the piece of work that a thread is at is finished, and the rest is dropped. Tensors are written
    through numpy, unseen by their version counters. In a process that was forked after it was made, every call raises
    ForkedError: the threads are in the parent alone.
    """

    keeps_errors = True

    def __init__(self) -> None:
        self.copies = 0
        self.launches = 0
        self.waits = 0
        self.closed = False
        self._process = os.getpid()
        self._kernels = HostKernels()
        self._workers: dict[str, Worker] = {}
        self._starting = threading.Lock()
        self._hold: HeldWork[threading.Event] | None = None
        self._number = 0

    def view(self, memory: Memory, tensor: torch.Tensor) -> Bytes:
        """A numpy view of a CPU tensor, whatever the kind of memory. Raises DeviceError for other tensors."""
        if tensor.device.type != "cpu":
            raise DeviceError(f"ThreadDevice copies CPU tensors, and this one is on {tensor.device}: use a device for that memory")
        array: Bytes = tensor.numpy()
        return array

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Host memory, not initialised."""
        self._check_open()
        return torch.empty(size, dtype=torch.uint8, device="cpu")

    def copy(self, stream: str, source: Bytes, target: Bytes) -> None:
        """Queues a copy; the stream's worker does it later."""
        self._queue(stream, _copy, source, target)
        self.copies += 1

    def gather(self, stream: str, source: Bytes, index: Index, target: Bytes) -> None:
        """Queues a kernel that packs rows of a pool."""
        self._queue(stream, self._kernels.gather, source, index, target)
        self.launches += 1

    def scatter(self, stream: str, source: Bytes, target: Bytes, index: Index) -> None:
        """Queues a kernel that unpacks rows into a pool."""
        self._queue(stream, self._kernels.scatter, source, target, index)
        self.launches += 1

    def host_copy(self, source: Bytes, target: Bytes) -> None:
        """Copies at once, on the calling thread."""
        target[...] = source

    def synchronize(self, stream: str) -> None:
        """Waits for all that was queued on the stream; lets go of what is held there first, or it would wait for ever."""
        self._check_open()
        self.waits += 1
        if worker := self._workers.get(stream):
            self._wait(worker.mark(self._next()))

    def event(self) -> ThreadEvent:
        """A new event."""
        return ThreadEvent()

    def record(self, event: ThreadEvent, stream: str) -> None:
        """Queues a mark; it is the event's last record at once."""
        self._check_open()
        event.last = self._worker(stream).mark(self._next(), self._span(stream))

    def wait_event(self, stream: str, event: ThreadEvent) -> None:
        """The stream's worker waits for the mark that is the event's last record now."""
        self._check_open()
        last, number = event.last, self._next()
        if last is not None or self._spans is not None:
            self._worker(stream).wait_for(last, self._span(stream))
        if last is not None and self._hold:
            self._hold.waits(stream, number, last)

    def wait(self, event: ThreadEvent) -> None:
        """Waits for the event's last record; lets go of what is held before it, or it would wait for ever."""
        check_process(self._process)
        self.waits += 1
        if event.last is not None:
            self._wait(event.last)

    def query(self, event: ThreadEvent) -> bool:
        """Whether the event's last record has ended. Lets go of nothing that is held."""
        check_process(self._process)
        if event.last is None:
            return True
        if event.last.ended:
            event.last.check()
        return event.last.ended

    @contextmanager
    def hold(self, which: Callable[[str, int], bool]) -> Iterator[HeldWork[threading.Event]]:
        """For tests: keeps back the work for which `which(stream, index)` holds, until the host waits for it.

        `index` counts copies and kernels from the `with` on, over all streams. Held work begins when the host waits for
        its stream, or for an event recorded after it, or for anything that comes after it; at `release()`; or at the
        end of the `with`. So code that waits right never notices, and code that goes on without the wait goes wrong
        every time. One hold at a time.
        """
        if self._hold:
            raise DeviceError("this device is held already: leave the first hold before the next")
        self._hold = hold = HeldWork(which, threading.Event)
        try:
            yield hold
        finally:
            self._hold = None
            hold.release()

    def close(self) -> None:
        """Finishes all work and ends the threads. Raises the first error that has not been waited for.

        If it is interrupted, a second call finishes the work.
        """
        check_process(self._process)
        with lock_of(self):  # no call is between its look at `closed` and its work
            self.closed = True
        if self._hold:
            self._hold.release()
        for worker in self._workers.values():
            worker.queue.put(None)  # so that all of them end at the same time
        for worker in self._workers.values():
            worker.finish()
        left_behind(self).clear()
        workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            if (error := worker.error or worker.untold) is not None:
                raise error

    def __enter__(self) -> "ThreadDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _queue(self, stream: str, function: Callable[..., None], *arguments: Any) -> None:
        self._check_open()
        worker, number = self._worker(stream), self._next()
        gate = self._hold.gate(stream, number) if self._hold else None
        worker.queue.put((function, arguments, gate, self._span(stream)))

    def _wait(self, record: Record) -> None:
        if self._hold:
            self._hold.let_go(record.stream, record.number)
        record.block()
        record.check()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _worker(self, stream: str) -> Worker:
        return self._workers.get(stream) or self._start(stream)

    def _start(self, stream: str) -> Worker:
        with self._starting:
            if stream not in self._workers:
                self._workers[stream] = worker = Worker(stream)
                weakref.finalize(
                    self, worker.queue.put, None
                ).atexit = False  # a device that is dropped, not closed, leaves no thread
            return self._workers[stream]

    def _check_open(self) -> None:
        check_process(self._process)
        if self.closed:
            raise ClosedError("this ThreadDevice is closed: make a new one, or move the call into its `with`")


def _copy(source: Bytes, target: Bytes) -> None:
    target[...] = source
