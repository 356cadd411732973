"""Many calls, one wait: all layers, all caches and all sequences of a step."""

from types import TracebackType
from typing import Any, TypeVar

from .arguments.requests import Request
from .calls import Calls
from .errors import ClosedError, NotFinishedError
from .runtime.stats import Stats
from .submitter import Submitter
from .transfer import Transfer

R = TypeVar("R")


class Batch(Submitter):
    """Calls that are waited for together. Made by `Stager.batch`; call it inside the `with`, wait after it.

    Each call gives its own transfer, which is also `part(i)`, in the order of the calls: it can be waited for alone, so
    the first layer's rows can be used while those of the others are under way. `wait` is one wait for all of them, for
    each stream that they are on. Calls of schemes that finish inside the call have nothing left to wait for. No transfer
    of a batch may touch rows that another one of it writes.

    >>> import torch
    >>> from kvstage import PagedPool, Stager, ThreadDevice
    >>> caches, table = [PagedPool(torch.full((4, 2, 3), float(k))) for k in range(3)], [3, 1]
    >>> with ThreadDevice() as device:
    ...     with Stager(device, scheme="direct").batch() as batch:
    ...         for cache in caches:
    ...             transfer = batch.read(cache, table, 0, 4)
    ...     batch.part(0).wait()  # the first cache alone
    ...     batch.wait()
    >>> [batch.part(i).result()[0, 0].item() for i in range(len(batch))]
    [0.0, 1.0, 2.0]
    """

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls)
        self._transfers: list[Transfer[Any]] = []
        self._ended = False

    def part(self, i: int) -> Transfer[Any]:
        """The transfer of the i-th call, from 0 on. Raises IndexError if there is none."""
        if not 0 <= i < len(self._transfers):
            raise IndexError(f"part {i} of a batch of {len(self._transfers)} calls")
        return self._transfers[i]

    def __len__(self) -> int:
        """How many calls there are so far."""
        return len(self._transfers)

    @property
    def stats(self) -> Stats:
        """What all calls of the batch have asked of the device so far, and the waits for them."""
        return sum((transfer.stats for transfer in self._transfers), Stats())

    def query(self) -> bool:
        """Whether all rows have arrived. Never blocks. Raises what went wrong on their way."""
        return all(transfer.query() for transfer in self._transfers)

    def wait(self, timeout: float | None = None) -> None:
        """Returns when all rows have arrived, or raises what went wrong on their way.

        After `timeout` seconds for each stream, if it is given, raises TimeoutError. Raises NotFinishedError inside
        the `with`.
        """
        self._check_ended()
        for transfer in self._last_of_each_stream():
            transfer.wait(timeout)
        for transfer in self._transfers:
            if not transfer.query():
                transfer.wait(timeout)

    def wait_stream(self, stream: object = None) -> None:
        """What the caller puts on `stream` from now on begins after all rows have arrived: see `Transfer.wait_stream`.

        Raises DeviceError, and orders nothing, if the host has to convert the rows of one of the reads first.
        """
        self._check_ended()
        for transfer in self._transfers:
            transfer.check_stream()
        for transfer in self._last_of_each_stream():
            transfer.wait_stream(stream)

    def release(self) -> None:
        """`Transfer.release` of all."""
        for transfer in self._transfers:
            transfer.release()

    def cancel(self) -> None:
        """`Transfer.cancel` of all."""
        for transfer in self._transfers:
            transfer.cancel()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._ended = True

    def _last_of_each_stream(self) -> list[Transfer[Any]]:
        """A stream is in order: when the last one has ended, so have those before it."""
        return list({transfer.stream: transfer for transfer in self._transfers if transfer.stream is not None}.values())

    def _submit(self, request: Request) -> Transfer[R]:
        transfer: Transfer[R] = self._calls.submit(request)
        self._transfers.append(transfer)
        return transfer

    def _check_open(self) -> None:
        if self._ended:
            raise ClosedError("this batch has ended: call the stager itself, or begin a new batch")
        self._calls.check_open()

    def _check_ended(self) -> None:
        if not self._ended:
            raise NotFinishedError("the batch is still open: leave its `with` first, then wait; or wait for one of its transfers")
