"""What can be asked of a stager and of a batch: `read`, `write` and `copy`, with their arguments checked."""

from abc import ABC, abstractmethod
from typing import TypeVar

import torch

from .arguments.block_table import BlockTable
from .arguments.requests import Request, copy_request, read_request, write_request
from .calls import Calls
from .pool import PagedPool
from .transfer import Transfer

R = TypeVar("R")


class Submitter(ABC):
    """The calls that move rows. Each checks its arguments, makes one request of them, and submits that."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def read(
        self,
        pool: PagedPool,
        block_table: BlockTable,
        start: int,
        stop: int,
        *,
        out: torch.Tensor | None = None,
        dtype: torch.dtype | None = None,
        after: object = None,
    ) -> Transfer[torch.Tensor]:
        """Rows [start, stop) of the sequence whose blocks the table lists, in order: [stop - start, *row] at the host.

        `out` takes them if it is given: contiguous, on the CPU (pinned, for "direct", "gather_pinned" and "gather_copy"
        on an accelerator), of the pool's dtype, and sharing no memory with the pool. With dtype=torch.float32 rows of a bf16
        pool are converted, exactly, when `wait` returns or `query` is True, and `out` is f32. The call comes after
        `after`: an event or a stream of the caller's, as the device has them; None is the caller's current stream, on
        devices that know one. Raises a KVStageError, with nothing written, if anything does not fit.
        """
        self._check_open()
        return self._submit(
            read_request(pool, block_table, start, stop, out, dtype, after, self._calls.last_blocks, self._calls.distinct)
        )

    def write(
        self,
        pool: PagedPool,
        block_table: BlockTable,
        start: int,
        rows: torch.Tensor,
        *,
        dtype: torch.dtype | None = None,
        after: object = None,
    ) -> Transfer[None]:
        """Puts `rows`, [n, *row], at rows [start, start + n) of the sequence; all other rows of the pool stay as they are.

        `rows` is contiguous, on the CPU (pinned, for "direct", "gather_pinned" and "gather_copy" on an accelerator), of the
        pool's dtype, and shares no memory with the pool. With dtype=torch.float32 `rows` is f32 and the pool bf16: the call
        rounds to the nearest, ties to even (see `kvstage.arguments.conversion` for NaNs), and has done with `rows` when it
        returns. No block may be listed twice among those touched. `after` as for `read`. Raises a KVStageError, with
        nothing written, if anything does not fit.
        """
        self._check_open()
        return self._submit(write_request(pool, block_table, start, rows, dtype, after, self._calls.last_blocks))

    def copy(
        self,
        source: PagedPool,
        source_blocks: BlockTable,
        target: PagedPool,
        target_blocks: BlockTable,
        *,
        after: object = None,
    ) -> Transfer[None]:
        """Copies all blocks of one table to those of the other, in order: from pool to pool, with no rows at the host.

        The pools have the same rows and dtype, and share no memory. Their block sizes may differ by a whole factor k: k
        blocks of the one then lie side by side in a block of the other, and if their number is no multiple of k, the
        last larger block is used in part; the rest of it stays as it is. Tables list the blocks that are copied and no
        padding; `target_blocks` names none twice. Whatever the stager's scheme is, this is one copy a (smaller) block
        and one wait, which is `Transfer.wait`. A pool at the host must be pinned on an accelerator. `after` as for
        `read`. Raises a KVStageError, with nothing written, if anything does not fit.

        >>> from kvstage import Stager, ThreadDevice
        >>> pool = PagedPool(torch.arange(8.0).view(8, 1, 1).expand(8, 2, 1).contiguous())  # each block holds its number
        >>> host = PagedPool(torch.zeros(3, 4, 1))  # blocks of two of those
        >>> with ThreadDevice() as device, Stager(device, scheme="direct") as stager:
        ...     stager.copy(pool, [7, 2, 5], host, [2, 0]).wait()
        >>> host.tensor.squeeze().tolist()
        [[5.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [7.0, 7.0, 2.0, 2.0]]
        """
        self._check_open()
        return self._submit(copy_request(source, source_blocks, target, target_blocks, after))

    @abstractmethod
    def _check_open(self) -> None:
        """Raises ClosedError or ForkedError if no call can be made any more."""

    @abstractmethod
    def _submit(self, request: Request) -> Transfer[R]:
        """Performs the request."""
