"""The calls of a stager: checked, performed, and remembered as long as something of them is under way."""

from collections import deque
from collections.abc import Callable
from inspect import signature
from math import prod
from threading import Lock
from typing import Any, TypeAlias

import torch
from torch.autograd.graph import increment_version

from kvstage_model.buffers import Memory
from kvstage_model.library import SLOTS, Pair, usual_chunk
from kvstage_model.parameters import SchemeFunction
from kvstage_model.runs import PagedRows
from kvstage_model.scheme import Scheme

from .device import Device
from .errors import AliasError, ClosedError, DeviceError, LayoutError, NotFinishedError, SchemeError
from .pending import Pending
from .pool import PagedPool, as_bytes, is_plain, same_memory
from .runtime import Runtime
from .tables import BlockTable, row_range, touched_blocks
from .transfer import Stats, Transfer

Left: TypeAlias = Callable[[str], Pending]
"""Takes what a call leaves on a stream: gives the Pending that it belongs to."""


class Calls:
    """Both directions of one scheme on one device. Calls from several threads go one by one."""

    def __init__(self, device: Device[Any, Any], pair: Pair, slots: int | None) -> None:
        self._device = device
        self._pair = pair
        self._slots = slots
        self._runtime = Runtime(device)
        self._lock = Lock()
        self._under_way: deque[Pending] = deque()
        self._closed = False
        if slots is not None and not any("slots" in signature(function).parameters for function in (pair.read, pair.write)):
            raise SchemeError(f"slots is {slots}, and the scheme has no ring of slots: leave it out, or choose 'ring' or 'gather'")
        if slots is not None and slots < 1:
            raise SchemeError(f"slots is {slots}: a ring needs at least 1, and 2 to have a copy under way beside the host")

    def read(
        self, pool: PagedPool, block_table: BlockTable, start: int, stop: int, out: torch.Tensor | None, left: Left
    ) -> Transfer[torch.Tensor]:
        """`Stager.read`; what it leaves under way goes to `left`."""
        self._check_open()
        start, stop = row_range(start, stop)
        blocks = touched_blocks(pool, block_table, start, stop, distinct=False)
        shape = (stop - start, *pool.row_shape)
        if out is not None:
            _check_rows("out", out, pool, shape)
        if start == stop:
            return Transfer(torch.empty(shape, dtype=pool.dtype) if out is None else out, Stats())
        scheme = self._scheme(self._pair.read, pool, PagedRows(blocks, pool.num_blocks, pool.block_size, start, stop))
        if out is None:
            out = self._new(scheme, shape, pool.dtype)
        return Transfer(out, *self._submit(scheme, pool, out, out, left))

    def write(self, pool: PagedPool, block_table: BlockTable, start: int, rows: torch.Tensor, left: Left) -> Transfer[None]:
        """`Stager.write`; what it leaves under way goes to `left`."""
        self._check_open()
        count = rows.shape[0] if rows.dim() else 0
        start, stop = row_range(start, start + count)
        _check_rows("rows", rows, pool, (count, *pool.row_shape))
        blocks = touched_blocks(pool, block_table, start, stop, distinct=True)
        if start == stop:
            return Transfer(None, Stats())
        scheme = self._scheme(self._pair.write, pool, PagedRows(blocks, pool.num_blocks, pool.block_size, start, stop))
        return Transfer(None, *self._submit(scheme, pool, rows, pool.tensor, left))

    def marked(self, stream: str) -> Pending:
        """A Pending of one call: what is on the stream now is all of it."""
        pending = self.pending(stream)
        pending.mark()
        return pending

    def pending(self, stream: str) -> Pending:
        """A new Pending, kept until its work has ended, whoever else forgets it."""
        pending = Pending(self._device, stream)
        self._under_way.append(pending)
        return pending

    def close(self) -> None:
        """Waits for everything under way, and refuses new calls. Raises the first error of work that nobody asked for."""
        self._closed = True
        with self._lock:
            while self._under_way:
                pending = self._under_way.popleft()
                try:
                    pending.wait()
                except (KeyboardInterrupt, NotFinishedError):  # not ended: its memory stays
                    self._under_way.appendleft(pending)
                    raise

    def _scheme(self, function: SchemeFunction, pool: PagedPool, rows: PagedRows) -> Scheme:
        chunk = usual_chunk(rows)
        within_a_block = 1  # a run across blocks would take the gaps between them along
        most = chunk if pool.bytes.is_contiguous() else within_a_block
        usual = {"slots": self._slots or SLOTS, "chunk": chunk, "most": most}
        names = signature(function).parameters
        return function(rows, **{name: value for name, value in usual.items() if name in names})

    def _new(self, scheme: Scheme, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The rows of a read, in the memory that the scheme wants them in."""
        if scheme.result is None or scheme.result.host.memory is Memory.PAGEABLE:
            return torch.empty(shape, dtype=dtype)
        return self._device.allocate(scheme.result.host.memory, prod(shape) * dtype.itemsize).view(dtype).view(shape)

    def _submit(
        self, scheme: Scheme, pool: PagedPool, host: torch.Tensor, written: torch.Tensor, left: Left
    ) -> tuple[Stats, Pending | None]:
        host_bytes = as_bytes(host, 1).unsqueeze(0)
        with self._lock:
            self._forget_what_has_ended()
            increment_version(written)  # raw bytes pass autograd by: it must still see that a saved tensor was overwritten
            submitted = self._runtime.submit(scheme, pool.bytes, host_bytes)
            if submitted.unfinished is None:
                return submitted.stats, None
            pending = left(submitted.unfinished)
            pending.keep(pool.bytes, host_bytes)
            return submitted.stats, pending

    def _forget_what_has_ended(self) -> None:
        """Raises the error of work that has failed, once: a transfer that was dropped must not fail unseen."""
        while self._under_way:
            pending = self._under_way.popleft()
            if not pending.query():
                self._under_way.appendleft(pending)
                return

    def _check_open(self) -> None:
        if self._device.closed:
            raise ClosedError("the stager's device is closed: make a new device and a new stager")
        if self._closed:
            raise ClosedError("this stager is closed: make a new one")


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
