"""`Stager`: moves rows between a paged pool and host memory with a scheme that is proved.

It checks what it is given, then lets the runtime perform the scheme; everything refused is refused before that.
"""

from threading import Lock
from typing import Any

import torch
from torch.autograd.graph import increment_version

from kvstage_model.library import LIBRARY, Pair
from kvstage_model.runs import PagedRows

from .device import Device
from .errors import AliasError, ClosedError, DeviceError, LayoutError, UnknownSchemeError
from .pool import PagedPool, as_bytes, is_plain, same_memory
from .runtime import Runtime
from .tables import BlockTable, row_range, touched_blocks
from .transfer import Stats, Transfer


class Stager:
    """Reads rows of a sequence out of a pool, and writes them into it, on one device.

    `scheme` is "per_row" or "per_block" (raises UnknownSchemeError for others), or a `kvstage_model.library.Pair` of
    your own: prove that first. A stager keeps its staging memory from call to call. Several threads may use it: their
    calls go one by one. Nobody else may write the rows of a call, nor read those it writes, before it returns.
    """

    def __init__(self, device: Device[Any], *, scheme: str | Pair) -> None:
        if isinstance(scheme, str) and scheme not in LIBRARY:
            raise UnknownSchemeError(f"there is no scheme {scheme!r}: choose one of {', '.join(map(repr, LIBRARY))}")
        self._pair = LIBRARY[scheme] if isinstance(scheme, str) else scheme
        self._device = device
        self._runtime = Runtime(device)
        self._calls = Lock()

    def read(
        self, pool: PagedPool, block_table: BlockTable, start: int, stop: int, *, out: torch.Tensor | None = None
    ) -> Transfer[torch.Tensor]:
        """Rows [start, stop) of the sequence whose blocks the table lists, in order: [stop - start, *row] at the host.

        `out` takes them where it is given: contiguous, on the CPU, of the pool's dtype, and sharing no memory with the
        pool. Raises a KVStageError, with nothing written, where anything does not fit.
        """
        self._check_open()
        start, stop = row_range(start, stop)
        blocks = touched_blocks(pool, block_table, start, stop, distinct=False)
        shape = (stop - start, *pool.row_shape)
        if out is None:
            out = torch.empty(shape, dtype=pool.dtype)
        else:
            _check_rows("out", out, pool, shape)
        rows = PagedRows(blocks.__getitem__, pool.num_blocks, pool.block_size, start, stop)
        return Transfer(out, self._run(self._pair.read, rows, pool, out, written=out))

    def write(self, pool: PagedPool, block_table: BlockTable, start: int, rows: torch.Tensor) -> Transfer[None]:
        """Puts `rows`, [n, *row], at rows [start, start + n) of the sequence; all other rows of the pool stay as they are.

        `rows` is contiguous, on the CPU, of the pool's dtype, and shares no memory with the pool. No block may be
        listed twice among those touched. Raises a KVStageError, with nothing written, where anything does not fit.
        """
        self._check_open()
        count = rows.shape[0] if rows.dim() else 0
        start, stop = row_range(start, start + count)
        _check_rows("rows", rows, pool, (count, *pool.row_shape))
        blocks = touched_blocks(pool, block_table, start, stop, distinct=True)
        paged = PagedRows(blocks.__getitem__, pool.num_blocks, pool.block_size, start, stop)
        return Transfer(None, self._run(self._pair.write, paged, pool, rows, written=pool.tensor))

    def _run(self, scheme: Any, rows: PagedRows, pool: PagedPool, host: torch.Tensor, *, written: torch.Tensor) -> Stats:
        if rows.start == rows.stop:
            return Stats()
        increment_version(written)  # raw bytes pass autograd by: it must still see that a saved tensor was overwritten
        with self._calls:
            return self._runtime.run(scheme(rows), pool.bytes, as_bytes(host, 1).unsqueeze(0))

    def _check_open(self) -> None:
        if self._device.closed:
            raise ClosedError("the stager's device is closed: make a new device and a new stager")


def _check_rows(name: str, tensor: torch.Tensor, pool: PagedPool, shape: tuple[int, ...]) -> None:
    if tensor.device.type != "cpu":
        raise DeviceError(f"{name} is on {tensor.device}: it must be a CPU tensor, because the host takes or fills it")
    if tensor.dtype != pool.dtype:
        raise LayoutError(f"{name} is {tensor.dtype} and {pool} is {pool.dtype}: rows move as raw bytes, so convert them first")
    if tuple(tensor.shape) != shape:
        raise LayoutError(f"{name} has shape {list(tensor.shape)}: it must be {list(shape)}, rows of {pool}")
    if not is_plain(tensor) or not tensor.is_contiguous():
        raise LayoutError(
            f"{name} has shape {list(shape)} and strides {list(tensor.stride())}: it must be contiguous; use .contiguous()"
        )
    if same_memory(tensor, pool.tensor):
        raise AliasError(f"{name} lies in the memory of {pool}: the call could overwrite what it has still to move; use a copy")
