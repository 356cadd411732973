"""`torch.ops.kvstage.read` and `write`: a stager's calls as operators, so that `torch.compile(fullgraph=True)` passes.

    number = kvstage.ops.number_of(stager)
    rows = torch.ops.kvstage.read(pool, block_table, start, stop, number)   # [stop - start, *row], at the host
    torch.ops.kvstage.write(pool, block_table, start, rows, number)         # the pool is changed

An operator takes tensors and numbers, no objects: so a stager goes by its number, which is a constant of what is compiled.
`pool` is a tensor [num_blocks, block_size, *row] as for `PagedPool`, `block_table` an int32 or int64 tensor on the CPU, `rows`
[n, *row]; `start` and `stop` may change from call to call without a new compilation. Each call comes after the caller's
current stream and waits for its rows: what it returns can be used. All errors are those of the stager; ClosedError if
no stager of that number lives. There is no gradient: rows come and go as bytes, and a pool or rows that require grad leave
no trace.
"""

from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from .errors import ClosedError, SchemeError, shown
from .pool import PagedPool
from .stager import Stager


class _Numbers:
    """The stagers that have a number, as long as another party holds them."""

    def __init__(self) -> None:
        self._next = count(1)
        self._stagers: WeakValueDictionary[int, Stager] = WeakValueDictionary()
        self._numbers: WeakKeyDictionary[Stager, int] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, stager: Stager) -> int:
        if not isinstance(stager, Stager):
            raise SchemeError(f"{shown(stager)} has no number: pass a Stager")
        with self._lock:
            if stager not in self._numbers:
                self._numbers[stager] = number = next(self._next)
                self._stagers[number] = stager
            return self._numbers[stager]

    def stager(self, number: int) -> Stager:
        found = self._stagers.get(number)
        if found is None:
            raise ClosedError(f"there is no stager of number {number}: keep the stager for as long as its operators are called")
        return found


_NUMBERS = _Numbers()
"""For the whole process, as operators are."""


def number_of(stager: Stager) -> int:
    """The number by which operators find a stager: always the same for one stager, and never that of another."""
    return _NUMBERS.of(stager)


@torch.library.custom_op("kvstage::read", mutates_args=())
def read(pool: torch.Tensor, block_table: torch.Tensor, start: int, stop: int, stager: int) -> torch.Tensor:
    """`Stager.read`, with its wait: rows [start, stop) of a sequence, [stop - start, *row] at the host."""
    transfer = _NUMBERS.stager(stager).read(PagedPool(pool), block_table, start, stop)
    transfer.wait()
    return transfer.result()


@torch.library.custom_op("kvstage::write", mutates_args=("pool",))
def write(pool: torch.Tensor, block_table: torch.Tensor, start: int, rows: torch.Tensor, stager: int) -> None:
    """`Stager.write`, with its wait: puts `rows`, [n, *row], at rows [start, start + n) of a sequence."""
    _NUMBERS.stager(stager).write(PagedPool(pool), block_table, start, rows).wait()


@read.register_fake
def _(pool: torch.Tensor, block_table: torch.Tensor, start: int, stop: int, stager: int) -> torch.Tensor:
    torch._check(stop >= start, lambda: f"rows [{start}, {stop}) end before they start")  # type: ignore[no-untyped-call]
    return pool.new_empty((stop - start, *pool.shape[2:]), device="cpu")


@write.register_fake
def _(pool: torch.Tensor, block_table: torch.Tensor, start: int, rows: torch.Tensor, stager: int) -> None:
    torch._check(rows.shape[1:] == pool.shape[2:], lambda: f"rows {list(rows.shape)} do not fit a pool {list(pool.shape)}")  # type: ignore[no-untyped-call]


def _rows_are_constants(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.mark_non_differentiable(output)


def _no_gradient(ctx: Any, _: torch.Tensor) -> tuple[None, ...]:
    return (None,) * 5  # for what has no graph: torch asks for it all the same


read.register_autograd(_no_gradient, setup_context=_rows_are_constants)
