"""Many calls, one wait: all layers and all caches of a step."""

from types import TracebackType
from typing import Any, TypeVar

import torch

from .calls import Calls
from .errors import ClosedError
from .pending import Pending
from .pool import PagedPool
from .tables import BlockTable
from .transfer import Stats, Transfer

R = TypeVar("R")


class Batch:
    """Reads and writes that are waited for together. Made by `Stager.batch`; call it inside the `with`, wait behind it.

    Leaving the `with` ends the batch: one event marks all that it left under way, and `wait` is one wait for all. The
    transfers may be waited for one by one as well, each for the whole batch. Calls of schemes that finish inside the
    call have nothing left. No transfer of a batch may touch rows that another one of it writes.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._pending: dict[str, Pending] = {}
        self._transfers: list[Transfer[Any]] = []
        self._waits = 0
        self._ended = False

    def read(
        self, pool: PagedPool, block_table: BlockTable, start: int, stop: int, *, out: torch.Tensor | None = None
    ) -> Transfer[torch.Tensor]:
        """`Stager.read`, as part of the batch."""
        self._check_open()
        return self._joined(self._calls.read(pool, block_table, start, stop, out, self._left))

    def write(self, pool: PagedPool, block_table: BlockTable, start: int, rows: torch.Tensor) -> Transfer[None]:
        """`Stager.write`, as part of the batch."""
        self._check_open()
        return self._joined(self._calls.write(pool, block_table, start, rows, self._left))

    @property
    def stats(self) -> Stats:
        """What all calls of the batch have asked of the device so far, and its own waits."""
        return sum((transfer.stats for transfer in self._transfers), Stats(waits=self._waits))

    def query(self) -> bool:
        """Whether all rows have arrived. Never blocks. Raises what went wrong on their way."""
        return all(transfer.query() for transfer in self._transfers)

    def wait(self, timeout: float | None = None) -> None:
        """Returns when all rows have arrived, or raises what went wrong on their way.

        After `timeout` seconds for each stream, where it is given, raises TimeoutError. Raises NotFinishedError inside
        the `with`.
        """
        for pending in self._pending.values():
            self._waits += pending.wait(timeout)
        for transfer in self._transfers:
            transfer.wait()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._ended = True
        for pending in self._pending.values():
            pending.mark()

    def _joined(self, transfer: Transfer[R]) -> Transfer[R]:
        self._transfers.append(transfer)
        return transfer

    def _left(self, stream: str) -> Pending:
        if stream not in self._pending:
            self._pending[stream] = self._calls.pending(stream)
        return self._pending[stream]

    def _check_open(self) -> None:
        if self._ended:
            raise ClosedError("this batch has ended: call the stager itself, or begin a new batch")
