"""What a call returns: the handle on rows that are on their way."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from .arguments.timeout import check_timeout
from .errors import CancelledError, DeviceError, NotFinishedError, ReleasedError
from .runtime.memory_budget import Loan
from .runtime.pending import Pending
from .runtime.stats import Stats
from .selection.auto import Choice

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Moved:
    """What `Stager(on_transfer=...)` is told of a transfer that has ended: for traces and metrics.

    `direction` is "read", "write" or "copy", `scheme` the name of the loop that ran, `pool` the name of the pool (of the
    source, for a copy), `rows` how many were moved. The stats are complete, the last wait too if there was one.
    """

    direction: str
    scheme: str
    pool: str
    rows: int
    cancelled: bool
    stats: Stats


class Transfer(Generic[R]):
    """Rows on their way: ask with `query()`, or `wait()`, then take the `result()`, then `release()` it.

    "direct", "gather_pinned", "gather_host" and "gather_copy" return while their rows are under way, and `wait` is the one
    wait that the scheme ends with. The other schemes finish inside the call, so their transfers never block; `result()` asks for a
    `wait()` or a `query()` all the same: code that forgets it must not work only as long as the scheme is a slow one.

    Until then the caller leaves the rows alone on both sides, and reads none of the target, nor writes any of the
    source. What a copy under way may touch is kept alive, even when the transfer is dropped. Any thread may use it.

    >>> import torch
    >>> from kvstage import PagedPool, Stager, ThreadDevice
    >>> with ThreadDevice() as device, Stager(device, scheme="direct") as stager:
    ...     transfer = stager.read(PagedPool(torch.ones(4, 2, 3)), [3, 1], 0, 4)
    ...     while not transfer.query():
    ...         pass  # other work
    ...     total = transfer.result().sum().item()
    ...     transfer.release()
    >>> total
    12.0
    """

    def __init__(
        self,
        result: R,
        stats: Stats,
        pending: Pending | None = None,
        *,
        convert: Callable[[], None] | None = None,
        loans: Iterable[Loan] = (),
    ) -> None:
        self._result: R | None = result
        self._stats = stats
        self._pending = pending
        self._convert = convert
        self._loans = tuple(loans)
        self._lock = threading.Lock()
        self._asked = False
        self.cancelled = False
        self._released = False
        self.choice: Choice | None = None
        """What `scheme="auto"` has picked, and why; None if the stager was told which scheme to run."""

    @property
    def stats(self) -> Stats:
        """What the call has asked of the device so far; a wait after the call counts when it is made."""
        return self._stats if self._pending is None else self._stats + Stats(waits=self._pending.waits)

    def query(self) -> bool:
        """Whether the rows have arrived. Never blocks. Raises what went wrong on their way.

        Of a cancelled transfer: whether the device has done with its memory.
        """
        if self._pending is not None and not self._pending.query():
            return False
        self._arrived()
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the rows have arrived, or raises what went wrong on their way: each time, once it has.

        After `timeout` seconds, if it is given, raises TimeoutError; the rows are on their way still. So they are after a
        KeyboardInterrupt: wait again. Of a cancelled transfer: when the device has done with its memory. Raises RangeError
        if `timeout` is no number of seconds.
        """
        check_timeout(timeout)
        if self._pending is not None:
            self._pending.wait(timeout)
        self._arrived()

    def wait_stream(self, stream: object = None) -> None:
        """What the caller puts on `stream` from now on begins after the rows have arrived. The host goes on, unblocked.

        `stream` is what the device takes for one: a torch stream, or a name; None: the current stream of the calling
        thread. It does not tell the host anything, so `result()` is refused still: kernels take what the caller
        passed as `out`, or the pool. Raises DeviceError if the host has to convert the rows first.
        """
        self.check_stream()
        if self._pending is not None:
            self._pending.wait_stream(stream)

    def check_stream(self) -> None:
        """Raises DeviceError if a stream can't wait for the rows: the host has to convert them first."""
        if self._convert is not None:
            raise DeviceError("this read converts its rows at the host, which has to wait for them: call wait()")

    def result(self) -> R:
        """The rows of a read; None for a write or a copy.

        Raises NotFinishedError before `wait()` returned or `query()` was True, CancelledError after `cancel()`,
        ReleasedError after `release()`; and what went wrong on their way, once a wait or a query has raised it.
        """
        if self.cancelled:
            raise CancelledError("this transfer was cancelled: its rows are nobody's; read them again")
        if self._released:
            raise ReleasedError("this transfer was released: its memory may hold other rows by now; copy what you keep before")
        if self._pending is not None:
            self._pending.check_error()
        if not self._asked:
            raise NotFinishedError("the rows may still be on their way: call wait() first, or query() until it is True")
        return cast(R, self._result)  # None is a result of its own

    def release(self) -> None:
        """The rows have been used: their memory goes back to the stager, for other calls. `out` stays the caller's.

        The tensor of `result()` may not be used from now on, nor by a kernel that still runs. May be called twice. Raises
        NotFinishedError before `wait()` returned or `query()` was True: `cancel()` takes that case.
        """
        if not self._asked:
            raise NotFinishedError("the rows may still be on their way: wait for them first, or cancel() the transfer")
        self._released = True
        self.give_back()

    def cancel(self) -> None:
        """The rows are not wanted any more: `result()` is refused, and their memory goes back once the device has done with it.

        What is on a stream can't be called back. So the memory of the call, the caller's own too, is written or read until
        `query()` is True or `wait()` has returned: leave it alone until then. Of a cancelled write the pool holds each row
        as it was or as it should be. May be called at any time, and twice; after the end it is `release()`.
        """
        with self._lock:
            self.cancelled = True
            self._convert = None
        self.once_free(self.give_back)

    def when_done(self, do: Callable[[], None]) -> None:
        """Does something once the rows are seen to have arrived; now, if they have."""
        if self._pending is None:
            do()
        else:
            self._pending.at_end(do)

    def once_free(self, do: Callable[[], None]) -> None:
        """Gives back memory of the call once the device has done with it, whether all went well or not; now, if it has."""
        if self._pending is None:
            do()
        else:
            self._pending.once_free(do)

    def give_back(self) -> None:
        """Lets go of the result, and gives what was borrowed for it back to the stager."""
        self._result = None
        for loan in self._loans:
            loan.give_back()

    @property
    def stream(self) -> str | None:
        """The device's stream that the rows are under way on; None if the call has finished them."""
        return None if self._pending is None else self._pending.stream

    def _arrived(self) -> None:
        if self._asked:
            return
        with self._lock:
            if self._convert is not None:
                self._convert()
                self._convert = None
            self._asked = True
