"""A really asynchronous device without hardware: host memory, and one worker thread a stream.

A copy is queued, and the worker does it some time later, so a scheme that forgets a wait reads stale bytes here as on
an accelerator. Tests make that certain with `hold`.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import TracebackType
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.operations import Memory

from .errors import ClosedError, DeviceError

Bytes: TypeAlias = NDArray[np.uint8]
_Work: TypeAlias = tuple[Bytes, Bytes, threading.Event | None]
"""Source, target, and what the copy waits for before it begins, if anything."""


class Hold:
    """Keeps chosen copies back, and with them what their streams have to do behind them. Made by `ThreadDevice.hold`."""

    def __init__(self, which: Callable[[str, int], bool]) -> None:
        self._which = which
        self._seen = 0
        self._released = False
        self._gates: dict[str, list[threading.Event]] = {}

    def release(self) -> None:
        """Lets go of everything, and holds nothing from now on."""
        self._released = True
        for stream in list(self._gates):
            self.let_go(stream)

    def let_go(self, stream: str) -> None:
        """Lets go of what is held on one stream."""
        for gate in self._gates.pop(stream, []):
            gate.set()

    def gate(self, stream: str) -> threading.Event | None:
        """What the next copy has to wait for."""
        index, self._seen = self._seen, self._seen + 1
        if self._released or not self._which(stream, index):
            return None
        gate = threading.Event()
        self._gates.setdefault(stream, []).append(gate)
        return gate


class _Stream:
    """A queue and the thread that serves it. A lock in the queue is a mark: releasing it says that all before is done."""

    def __init__(self, name: str) -> None:
        self.queue: SimpleQueue[_Work | threading.Lock | None] = SimpleQueue()
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._serve, name=f"kvstage stream {name}", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            with self:  # whatever a copy raises is kept for the host, and the marks behind it are still served
                return self._work()

    def _work(self) -> None:
        get = self.queue.get
        while (work := get()) is not None:
            if not isinstance(work, tuple):
                work.release()
            elif self.error is None:
                source, target, gate = work
                if gate is not None:
                    gate.wait()
                target[...] = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if error is not None:
            self.error = error
        return True

    def wait(self) -> None:
        """Blocks until all that was queued before has ended; then raises what went wrong meanwhile."""
        mark = threading.Lock()
        mark.acquire()
        self.queue.put(mark)
        mark.acquire()
        if self.error is not None:
            error, self.error = self.error, None
            raise error


class ThreadDevice:
    """Copies host memory to host memory on worker threads. Pools must be CPU tensors; DEVICE memory is host memory too.

    A context manager: leaving it closes the device. `copies` and `waits` count what was asked for since it was made.
    After an error in a copy, the stream skips what is queued behind it until `synchronize` has raised the error.
    Tensors are written through numpy, unseen by their version counters.
    """

    def __init__(self) -> None:
        self.copies = 0
        self.waits = 0
        self.closed = False
        self._streams: dict[str, _Stream] = {}
        self._starting = threading.Lock()
        self._hold: Hold | None = None

    def view(self, memory: Memory, tensor: torch.Tensor) -> Bytes:
        """A numpy view of a CPU tensor, whatever the kind of memory. Raises DeviceError for other tensors."""
        if tensor.device.type != "cpu":
            raise DeviceError(f"ThreadDevice copies CPU tensors, and this one is on {tensor.device}: use a device for that memory")
        array: Bytes = tensor.numpy()
        return array

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Host memory, not initialised."""
        self._check_open()
        return torch.empty(size, dtype=torch.uint8)

    def copy(self, stream: str, source: Bytes, target: Bytes) -> None:
        """Queues a copy; the stream's worker does it later."""
        self._check_open()
        worker = self._streams.get(stream) or self._start(stream)
        self.copies += 1
        worker.queue.put((source, target, self._hold.gate(stream) if self._hold else None))

    def host_copy(self, source: Bytes, target: Bytes) -> None:
        """Copies at once, on the calling thread."""
        target[...] = source

    def synchronize(self, stream: str) -> None:
        """Waits for all that was queued on the stream; lets go of what is held there first, or it would wait for ever."""
        self._check_open()
        self.waits += 1
        if self._hold:
            self._hold.let_go(stream)
        if worker := self._streams.get(stream):
            worker.wait()

    @contextmanager
    def hold(self, which: Callable[[str, int], bool]) -> Iterator[Hold]:
        """For tests: keeps the copies back for which `which(stream, index)` holds, until the host waits for them.

        `index` counts copies from the `with` on, over all streams. A held copy begins when its stream is synchronized,
        at `release()`, or at the end of the `with`: so code that waits right never notices, and code that goes on
        without the wait goes wrong every time. One hold at a time.
        """
        if self._hold:
            raise DeviceError("this device is held already: leave the first hold before the next")
        self._hold = hold = Hold(which)
        try:
            yield hold
        finally:
            self._hold = None
            hold.release()

    def close(self) -> None:
        """Finishes all work and ends the threads. Raises the first error of a copy that nobody has waited for."""
        self.closed = True
        if self._hold:
            self._hold.release()
        streams, self._streams = list(self._streams.values()), {}
        for worker in streams:
            worker.queue.put(None)
        for worker in streams:
            worker.thread.join()
        for worker in streams:
            if worker.error is not None:
                raise worker.error

    def __enter__(self) -> "ThreadDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _start(self, stream: str) -> _Stream:
        with self._starting:
            if stream not in self._streams:
                self._streams[stream] = worker = _Stream(stream)
                weakref.finalize(self, worker.queue.put, None)  # a device that is dropped, not closed, leaves no thread
            return self._streams[stream]

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("this ThreadDevice is closed: make a new one, or move the call into its `with`")
