"""One stream of a `ThreadDevice`: a queue, and the thread that serves it."""

import atexit
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeAlias
from weakref import WeakSet

from .timing import Span, now

Work: TypeAlias = tuple[Callable[..., None], tuple[Any, ...], threading.Event | None, Span | None]
"""A function, its arguments, what the worker waits for before it calls it, and where it notes the times, if anywhere."""


SHORT = 0.01
"""Seconds between two looks at a thread that may have come to the next piece of work that is held back."""
_SERVING: "WeakSet[Worker]" = WeakSet()


@atexit.register
def _drop_all() -> None:
    """At the end of the process: before torch's own threads are taken down, which work may still use."""
    serving = list(_SERVING)
    for worker in serving:
        worker.drop()
    while serving:  # in turns, as one may wait for another
        serving = [worker for worker in serving if not worker.has_ended(SHORT)]


if hasattr(os, "register_at_fork"):  # if there is a fork
    os.register_at_fork(after_in_child=_SERVING.clear)  # the threads are in the parent alone


class Record:
    """A mark in a stream's queue. It ends when all that was queued before it has ended, or was skipped after an error."""

    __slots__ = ("_lock", "_span", "ended", "error", "number", "stream", "worker")

    def __init__(self, worker: "Worker", number: int, span: Span | None) -> None:
        self.worker = worker
        self.stream = worker.name
        self.number = number
        self.ended = False
        self.error: BaseException | None = None
        self._span = span
        self._lock = threading.Lock()  # half the price of a threading.Event
        self._lock.acquire()

    def end(self, error: BaseException | None) -> None:
        """Called by the worker."""
        self.error = error
        if self._span:
            self._span.begin = self._span.end = now()
        self.ended = True
        self._lock.release()

    def block(self) -> None:
        """Returns when the mark has ended."""
        if not self.ended:
            self._lock.acquire()
            self._lock.release()  # for others that wait

    def check(self) -> None:
        """Raises what went wrong before the mark; its stream does what is queued from then on."""
        if self.error is not None:
            self.worker.forget(self.error)
            raise self.error


class _Await:
    """A queue's entry: the worker waits for another stream's mark, if there is one."""

    __slots__ = ("record", "span")

    def __init__(self, record: Record | None, span: Span | None) -> None:
        self.record = record
        self.span = span

    def block(self) -> BaseException | None:
        """Returns when the mark has ended, with what went wrong before it."""
        if self.span:
            self.span.begin = now()
        if self.record:
            self.record.block()
        if self.span:
            self.span.end = now()
        return self.record.error if self.record else None


class _Forget:
    """A queue's entry: the host has seen this error, so what is queued from here on is done again."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Worker:
    """A queue of work, marks and waits, served in order. After an error, work is skipped that was queued before it was seen.

    `error` is what work is skipped for, `untold` what has kept work undone that no mark has covered yet: the next mark ends
    with it, even if the host has seen the same error at an earlier mark.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: SimpleQueue[Work | Record | _Await | _Forget | None] = SimpleQueue()
        self.error: BaseException | None = None
        self.untold: BaseException | None = None
        self._gate: threading.Event | None = None
        self._drops = False
        self._over = threading.Event()
        _SERVING.add(self)
        self.thread = threading.Thread(target=self._serve, name=f"kvstage stream {name}", daemon=True)
        self.thread.start()

    def mark(self, number: int, span: Span | None = None) -> Record:
        """Queues a mark."""
        record = Record(self, number, span)
        self.queue.put(record)
        return record

    def wait_for(self, record: Record | None, span: Span | None = None) -> None:
        """What is queued from now on comes after another stream's mark, if there is one."""
        self.queue.put(_Await(record, span))

    def forget(self, error: BaseException) -> None:
        """Goes on after an error that the host has seen: with what is queued from now on, as the rest was asked for before."""
        if self.error is error:
            self.queue.put(_Forget(error))

    def finish(self) -> None:
        """Does what is queued, and ends the thread. Returns when it has; can be called again if it is interrupted."""
        self.queue.put(None)
        self._over.wait()  # a `join` that was interrupted takes the thread for ended
        self.thread.join()

    def drop(self) -> None:
        """Has the rest of the queue dropped. Returns at once: a thread may be at a piece of work, or wait for another thread."""
        self._drops = True
        self.queue.put(None)

    def has_ended(self, within: float) -> bool:
        """Whether the thread has ended after so many seconds. If what it is at is held back, it is let go."""
        if (gate := self._gate) is not None and self._drops:
            gate.set()
        return self._over.wait(within)

    def _serve(self) -> None:
        over = False
        while not over:
            with self:  # whatever work raises is kept for the host, and the marks after it still end
                self._work()
                over = True
        self._over.set()

    def _work(self) -> None:
        get = self.queue.get
        while (entry := get()) is not None:
            if isinstance(entry, Record):
                error, self.untold = self.error or self.untold, None
                entry.end(error)
            elif isinstance(entry, _Await):
                error = entry.block()
                self.error = self.error or error
                self.untold = self.error or self.untold
            elif isinstance(entry, _Forget):
                if self.error is entry.error:
                    self.error = None
            elif self.error is not None:
                self.untold = self.error
            else:
                function, arguments, gate, span = entry
                if gate is not None:
                    self._gate = gate
                    gate.wait()
                    self._gate = None
                if span is not None:
                    span.begin = now()
                if not self._drops:
                    function(*arguments)
                if span is not None:
                    span.end = now()
                del function, arguments  # while the worker waits for more, it keeps nothing that was moved alive
            del entry

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if error is not None:
            self.error = self.untold = error
        return True
