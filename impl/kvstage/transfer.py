"""What a call returns: the handle on rows that are on their way."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from .errors import NotFinishedError
from .pending import Pending

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stats:
    """What one call asked of the device: asynchronous copies, blocking waits, bytes, and launches of kernels.

    `bytes` counts a row each time that a copy or a kernel moves it.
    """

    copies: int = 0
    waits: int = 0
    bytes: int = 0
    launches: int = 0

    def __add__(self, other: "Stats") -> "Stats":
        """What two calls asked for together."""
        return Stats(self.copies + other.copies, self.waits + other.waits, self.bytes + other.bytes, self.launches + other.launches)


class Transfer(Generic[R]):
    """Rows on their way: ask with `query()`, or `wait()`, then take the `result()`.

    "direct", "gather_pinned" and "gather_host" return while their rows are under way, and `wait` is the one wait that the
    scheme ends with. The other schemes finish inside the call, so their transfers never block; `result()` asks for a `wait()` or a
    `query()` all the same: code that forgets it must not work only as long as the scheme is a slow one.

    Until then the caller leaves the rows alone on both sides: he reads none of the target, and writes none of the
    source. What a copy under way may touch is kept alive, even when the transfer is dropped.
    """

    def __init__(self, result: R, stats: Stats, pending: Pending | None = None) -> None:
        self._stats = stats
        self._result = result
        self._pending = pending
        self._asked = False

    @property
    def stats(self) -> Stats:
        """What the call has asked of the device so far; a wait behind the call counts when it is made."""
        return self._stats

    def query(self) -> bool:
        """Whether the rows have arrived. Never blocks. Raises what went wrong on their way."""
        if self._pending is not None and not self._pending.query():
            return False
        self._arrived()
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the rows have arrived, or raises what went wrong on their way.

        After `timeout` seconds, where it is given, raises TimeoutError; the rows are on their way still. Raises
        NotFinishedError inside the `with` of a batch, which has not been ended yet.
        """
        if self._pending is not None and self._pending.wait(timeout):
            self._stats = replace(self._stats, waits=self._stats.waits + 1)
        self._arrived()

    def result(self) -> R:
        """The rows of a read; None for a write. Raises NotFinishedError before `wait()` returned or `query()` was True."""
        if not self._asked:
            raise NotFinishedError("the rows may still be on their way: call wait() first, or query() until it is True")
        return self._result

    def _arrived(self) -> None:
        self._pending = None
        self._asked = True
