"""The calls of a stager: checked, performed, and remembered as long as something of them is under way."""

import os
import weakref
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any, TypeAlias, TypeVar

import torch
from torch.autograd.graph import increment_version

from kvstage_model.language.buffers import Memory
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schemes.registry import Pair

from .arguments.block_table import BlockTable, TouchedBlocks, row_range, touched_blocks
from .arguments.conversion import to_bfloat16, to_float32
from .arguments.requests import CopyRequest, ReadRequest, Request, WriteRequest
from .devices.device import Device
from .devices.fork_check import check_process
from .devices.left_behind import left_behind
from .devices.lock import lock_of
from .errors import ClosedError, SchemeError, shown
from .pool import PagedPool, check_pool, packed_bytes
from .runtime.memory_budget import Buffers, Loan
from .runtime.pending import Pending
from .runtime.runtime import Runtime, Submitted
from .runtime.stats import Stats
from .selection.auto import Auto, Choice
from .selection.selector import Choosing
from .transfer import Moved, Transfer

R = TypeVar("R")
Hook: TypeAlias = Callable[[Moved], None]


class Calls:
    """Both directions of one scheme on one device, or of the one that is picked for each call. Calls go one by one."""

    def __init__(
        self, device: Device[Any, Any], scheme: Pair | Auto, slots: int | None, pinned_bytes: int | None, on_transfer: Hook | None
    ) -> None:
        self._device = device
        self._choosing = Choosing(device, scheme, slots)
        self._on_transfer = on_transfer
        self._buffers = Buffers(device, pinned_bytes)
        self._runtime = Runtime(device, self._buffers)
        self._lock = lock_of(device)  # other stagers of the device take it too
        self._left = left_behind(device)
        self._under_way = self._runtime.under_way
        weakref.finalize(self, self._runtime.leave_behind(self._left)).atexit = False
        self._last: tuple[TouchedBlocks, PagedRows] | None = None
        self._closed = self._forgetting = False
        self._process = os.getpid()

    def submit(self, request: Request) -> Transfer[Any]:
        """Performs what was asked for, with arguments that were checked."""
        if isinstance(request, ReadRequest):
            return self._read(request)
        return self._write(request) if isinstance(request, WriteRequest) else self._copy(request)

    def _read(self, asked: ReadRequest) -> Transfer[torch.Tensor]:
        pool, out = asked.pool, asked.out
        if asked.start == asked.stop:
            return Transfer(_no_rows(asked.shape, asked.dtype) if out is None else out, Stats())
        converts = asked.dtype != pool.dtype
        given = None if converts or out is None else packed_bytes(out)
        loans: list[Loan] = []
        with self._lock:
            self._begin()
            touched = self._rows(pool, asked.blocks, asked.start, asked.stop)
            scheme, choice = self._choosing.scheme(Direction.READ, pool, touched, given, self._buffers.left)
            if converts and out is None:
                out = self._borrow(loans, Memory.PAGEABLE, asked.shape, asked.dtype)
            taken = None if converts else out
            moved = self._borrow(loans, _memory_at_host(scheme), asked.shape, pool.dtype) if taken is None else taken
            moved_bytes = packed_bytes(moved) if given is None else given
            owner = self._choosing.owner(Direction.READ, choice)
            submitted = self._perform(scheme, pool.bytes, moved_bytes, moved, asked.after, loans, owner)
        result = moved if out is None else out

        def convert() -> None:
            to_float32(moved, result)
            loans[-1].give_back()

        transfer = Transfer(result, submitted.stats, submitted.pending, convert=convert if converts else None, loans=loans)
        transfer.choice = choice
        return self._told("read", scheme, pool, transfer)

    def _write(self, asked: WriteRequest) -> Transfer[None]:
        pool, rows = asked.pool, asked.rows
        if asked.start == asked.stop:
            return Transfer(None, Stats())
        converts = rows.dtype != pool.dtype
        given = None if converts else packed_bytes(rows)
        loans: list[Loan] = []
        with self._lock:
            self._begin()
            touched = self._rows(pool, asked.blocks, asked.start, asked.stop)
            scheme, choice = self._choosing.scheme(Direction.WRITE, pool, touched, given, self._buffers.left)
            if converts:
                converted = self._borrow(loans, _memory_at_host(scheme), rows.shape, pool.dtype)
                to_bfloat16(rows, converted)
                rows = converted
            moved_bytes = packed_bytes(rows) if given is None else given
            owner = self._choosing.owner(Direction.WRITE, choice)
            submitted = self._perform(scheme, pool.bytes, moved_bytes, pool.tensor, asked.after, loans, owner)
        transfer = Transfer(None, submitted.stats, submitted.pending, loans=loans)
        transfer.choice = choice
        transfer.once_free(transfer.give_back)
        return self._told("write", scheme, pool, transfer)

    def _copy(self, asked: CopyRequest) -> Transfer[None]:
        source, target, scheme = asked.source, asked.target, asked.scheme
        if scheme is None:
            return Transfer(None, Stats())
        small, larger = (source, target) if source.block_size <= target.block_size else (target, source)
        with self._lock:
            self._begin()
            submitted = self._perform(scheme, small.bytes, larger.bytes, target.tensor, asked.after)
        return self._told("copy", scheme, source, Transfer(None, submitted.stats, submitted.pending))

    def close(self) -> None:
        """Waits for everything under way, and refuses new calls. Raises the first error of work that was not asked for."""
        check_process(self._process)
        self._closed = True
        while (pending := self._first_under_way()) is not None:  # other stagers of the device may issue meanwhile
            try:
                if not pending.error:  # or else its error was raised before
                    pending.wait()
            finally:
                with self._lock:
                    self._runtime.forget(pending)
        with self._lock:
            self._runtime.quiet()
            self._runtime.settle()
            self._buffers.close()
            self._left.let_go(self._device)

    @property
    def last_blocks(self) -> TouchedBlocks | None:
        """The blocks of the last call: for those of the next to be compared with."""
        return self._last[0] if self._last else None

    @property
    def distinct(self) -> bool:
        """Whether reads, too, are only for tables in which no block occurs twice."""
        return self._choosing.distinct

    def _rows(self, pool: PagedPool, blocks: TouchedBlocks, start: int, stop: int) -> PagedRows:
        """The object of the last call if it is for the same rows, as for all caches of a step: the runtime knows it."""
        last = self._last
        if last and last[0] is blocks and _shape(last[1]) == (pool.num_blocks, pool.block_size, start, stop):
            return last[1]
        rows = PagedRows(blocks, pool.num_blocks, pool.block_size, start, stop)
        self._last = blocks, rows
        return rows

    def choice(self, pool: PagedPool, block_table: BlockTable, start: int, stop: int, direction: Direction) -> Choice | None:
        """`Stager.choice`."""
        self.check_open()
        check_pool("pool", pool)
        if not isinstance(direction, Direction):
            raise SchemeError(f"direction is {shown(direction)}: pass kvstage.Direction.READ or WRITE")
        start, stop = row_range(start, stop)
        blocks = touched_blocks(pool, block_table, start, stop, distinct=direction is Direction.WRITE)
        rows = PagedRows(blocks, pool.num_blocks, pool.block_size, start, stop)
        with self._lock:
            self.check_open()
            return self._choosing.scheme(direction, pool, rows, None, self._buffers.left)[1]

    def _borrow(self, loans: list[Loan], memory: Memory, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor in memory of the stager, which `loans` is to give back."""
        size = prod(shape) * dtype.itemsize
        loan = self._buffers.take(memory, size, grows=True)
        loans.append(loan)
        with torch.inference_mode(False):  # an ordinary tensor, whatever the caller's mode
            return loan.tensor[:size].view(dtype).view(shape)

    def _perform(
        self,
        scheme: Scheme,
        pool: torch.Tensor,
        host: torch.Tensor,
        written: torch.Tensor,
        after: object,
        loans: Sequence[Loan] = (),
        owner: Hashable = None,
    ) -> Submitted:
        """Performs a call. Raw bytes pass autograd by: it must still see that a saved tensor was overwritten, or may be."""
        submitted = None
        try:
            proved = owner is None or self._choosing.proved
            submitted = self._runtime.submit(scheme, pool, host, after=after, loans=loans, owner=owner, proved=proved)
            increment_version(written)
            return submitted
        except BaseException:
            if submitted is not None or self._runtime.in_doubt:
                increment_version(written)
            raise

    def _told(self, direction: str, scheme: Scheme, pool: PagedPool, transfer: Transfer[R]) -> Transfer[R]:
        """Has the hook told of a transfer as soon as it is seen to have ended."""
        if self._on_transfer is not None and scheme.result is not None:
            hook, name, rows = self._on_transfer, pool.name, scheme.result.length
            transfer.when_done(lambda: hook(Moved(direction, scheme.name, name, rows, transfer.cancelled, transfer.stats)))
        return transfer

    def _forget_what_has_ended(self) -> None:
        """Raises the error of work that has failed, once: a transfer that was dropped must not fail unseen."""
        if self._forgetting:  # a hook has called: the call that tells it goes on after it
            return
        self._forgetting = True
        try:
            for _ in range(len(self._under_way)):  # and not what hooks issue meanwhile: that might never end
                if not self._under_way or not self._look_at(self._under_way[0]):
                    return
        finally:
            self._forgetting = False

    def _look_at(self, pending: Pending) -> bool:
        """Whether work has ended, or failed: it is forgotten then."""
        try:
            if not pending.error and not pending.query():
                return False
        except BaseException:
            self._runtime.forget(pending)
            raise
        self._runtime.forget(pending)
        return True

    def _first_under_way(self) -> Pending | None:
        with self._lock:
            return self._under_way[0] if self._under_way else None

    def _begin(self) -> None:
        """Under the lock, before anything of a call: a close that has begun meanwhile refuses it, or waits for it."""
        self._forget_what_has_ended()
        self.check_open()
        self._left.let_go(self._device)

    def check_open(self) -> None:
        """Raises ClosedError if the stager or its device is closed, ForkedError in a child of the process that it was made in."""
        check_process(self._process)
        if self._device.closed:
            raise ClosedError("the stager's device is closed: make a new device and a new stager")
        if self._closed:
            raise ClosedError("this stager is closed: make a new one")


def _no_rows(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    with torch.inference_mode(False):  # an ordinary tensor, whatever the caller's mode
        return torch.empty(shape, dtype=dtype, device="cpu")


def _shape(rows: PagedRows) -> tuple[int, ...]:
    return rows.num_blocks, rows.block_size, rows.start, rows.stop


def _memory_at_host(scheme: Scheme) -> Memory:
    """The memory that a scheme wants the rows at the host in."""
    return Memory.PAGEABLE if scheme.result is None else scheme.result.host.memory
