"""What a call asks for, once its arguments have been checked: made from them here, submitted by `calls`."""

from dataclasses import dataclass
from math import prod

import torch

from kvstage_model.language.scheme import Scheme

from ..errors import RangeError, shown
from ..pool import PagedPool, check_pool
from .block_table import BlockTable, TouchedBlocks, row_range, touched_blocks
from .conversion import dtype_at_host
from .host_rows import check_rows, check_tensor
from .pool_copy import copying

MOST_BYTES = 2**63 - 1
"""What memory can be addressed by."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadRequest:
    """Rows [start, stop), which lie in `blocks` of the pool, for the host, as `dtype`; into `out` if it is given."""

    pool: PagedPool
    blocks: TouchedBlocks
    start: int
    stop: int
    dtype: torch.dtype
    out: torch.Tensor | None
    after: object

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the rows at the host."""
        return (self.stop - self.start, *self.pool.row_shape)


@dataclass(frozen=True, slots=True, eq=False)
class WriteRequest:
    """`rows` of the host, to become rows [start, stop), which lie in `blocks` of the pool."""

    pool: PagedPool
    blocks: TouchedBlocks
    start: int
    stop: int
    rows: torch.Tensor
    after: object


@dataclass(frozen=True, slots=True, eq=False)
class CopyRequest:
    """Blocks of one pool to those of another, by a scheme; None if there is none to copy."""

    source: PagedPool
    target: PagedPool
    scheme: Scheme | None
    after: object


Request = ReadRequest | WriteRequest | CopyRequest


def read_request(
    pool: PagedPool,
    block_table: BlockTable,
    start: int,
    stop: int,
    out: torch.Tensor | None,
    dtype: torch.dtype | None,
    after: object,
    last: TouchedBlocks | None,
    distinct: bool,
) -> ReadRequest:
    """Of the arguments of `Submitter.read`; `last` are blocks of a call before, and `distinct` is whether no block may be listed
    twice, as for `touched_blocks`. Raises a KVStageError.
    """
    check_pool("pool", pool)
    start, stop = row_range(start, stop)
    at_host = dtype_at_host(pool, dtype)
    blocks = touched_blocks(pool, block_table, start, stop, distinct=distinct, last=last)
    request = ReadRequest(pool, blocks, start, stop, at_host, out, after)
    if out is not None:
        check_tensor("out", out)
        check_rows("out", out, pool, request.shape, at_host)
    elif prod(request.shape) * at_host.itemsize > MOST_BYTES:
        raise RangeError(f"rows [{shown(start)}, {shown(stop)}) are more bytes than memory can have: read fewer rows at once")
    return request


def write_request(
    pool: PagedPool,
    block_table: BlockTable,
    start: int,
    rows: torch.Tensor,
    dtype: torch.dtype | None,
    after: object,
    last: TouchedBlocks | None,
) -> WriteRequest:
    """Of the arguments of `Submitter.write`; `last` as for `read_request`. Raises a KVStageError."""
    check_pool("pool", pool)
    check_tensor("rows", rows)
    start, _ = row_range(start, start)
    count = rows.shape[0] if rows.dim() else 0
    stop = start + count
    check_rows("rows", rows, pool, (count, *pool.row_shape), dtype_at_host(pool, dtype))
    blocks = touched_blocks(pool, block_table, start, stop, distinct=True, last=last)
    return WriteRequest(pool, blocks, start, stop, rows, after)


def copy_request(
    source: PagedPool, source_blocks: BlockTable, target: PagedPool, target_blocks: BlockTable, after: object
) -> CopyRequest:
    """Of the arguments of `Submitter.copy`. Raises a KVStageError."""
    check_pool("source", source)
    check_pool("target", target)
    return CopyRequest(source, target, copying(source, source_blocks, target, target_blocks), after)
