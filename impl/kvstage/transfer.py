"""What a call returns: the handle on rows that are on their way."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from .errors import NotFinishedError

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stats:
    """What one call asked of the device: asynchronous copies, blocking waits, and the bytes that the copies moved."""

    copies: int = 0
    waits: int = 0
    bytes: int = 0


class Transfer(Generic[R]):
    """Rows on their way: ask with `query()`, or `wait()`, then take the `result()`.

    The schemes `per_row` and `per_block` finish inside the call, so neither ever blocks. `result()` asks for one of
    them all the same: code that forgets it must not work only as long as the scheme is a slow one.
    """

    def __init__(self, result: R, stats: Stats) -> None:
        self.stats = stats
        self._result = result
        self._asked = False

    def query(self) -> bool:
        """Whether the rows have arrived. Never blocks."""
        self._asked = True
        return True

    def wait(self) -> None:
        """Returns when the rows have arrived."""
        self._asked = True

    def result(self) -> R:
        """The rows of a read; None for a write. Raises NotFinishedError before `wait()` returned or `query()` was True."""
        if not self._asked:
            raise NotFinishedError("the rows may still be on their way: call wait() first, or query() until it is True")
        return self._result
