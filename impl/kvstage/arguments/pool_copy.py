"""Copies between two pools: what is checked of them, and how the two tables become the rows of a scheme."""

from kvstage_model.language.buffers import Memory
from kvstage_model.language.paged_rows import IntoLarger, IntoSmaller, PagedRows
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.registry import COPY

from ..errors import AliasError, LayoutError, TableTooShortError
from ..pool import PagedPool, disjoint
from .block_table import BlockTable, table_length, touched_blocks


def copying(source: PagedPool, source_blocks: BlockTable, target: PagedPool, target_blocks: BlockTable) -> Scheme | None:
    """The scheme that copies all blocks of one table to those of the other one, in order; None if there is none.

    Its `result.pool` is the pool with the smaller blocks. Raises a KVStageError if pools or tables don't fit.
    """
    _check_pools(source, target)
    into_larger = source.block_size <= target.block_size
    pools = ((source, source_blocks), (target, target_blocks))
    (small, small_blocks), (larger, larger_blocks) = pools if into_larger else reversed(pools)
    factor = larger.block_size // small.block_size
    number = table_length(small_blocks)
    needed = -(-number // factor)
    if table_length(larger_blocks) != needed:
        raise TableTooShortError(
            f"{number} blocks of {small.block_size} rows fill {needed} blocks of {larger.block_size}, and the other table has "
            f"{table_length(larger_blocks)}: both tables must list the blocks of the same rows, without padding"
        )
    stop = number * small.block_size
    table = touched_blocks(small, small_blocks, 0, stop, distinct=not into_larger)
    larger_table = touched_blocks(larger, larger_blocks, 0, stop, distinct=into_larger)
    if not number:
        return None
    rows = PagedRows(table, small.num_blocks, small.block_size, 0, stop)
    lies = _memory(small), _memory(larger)
    if into_larger:
        return COPY.read(IntoLarger(rows, larger_table, larger.num_blocks, factor, *lies))
    return COPY.write(IntoSmaller(rows, larger_table, larger.num_blocks, factor, *lies))


def _memory(pool: PagedPool) -> Memory:
    """Where a pool lies: the device's copies reach the host's memory where it is pinned."""
    return Memory.PINNED if pool.tensor.device.type == "cpu" else Memory.DEVICE


def _check_pools(source: PagedPool, target: PagedPool) -> None:
    if source.dtype != target.dtype or source.row_shape != target.row_shape:
        raise LayoutError(
            f"{source} has rows of {list(source.row_shape)} {source.dtype}, {target} of {list(target.row_shape)} {target.dtype}: "
            "a copy moves raw bytes, so both must have the same rows"
        )
    sizes = sorted((source.block_size, target.block_size))
    if sizes[1] % sizes[0]:
        raise LayoutError(
            f"{source} has blocks of {source.block_size} rows, {target} of {target.block_size}: one must be a multiple of the other"
        )
    if not disjoint(source, target):
        raise AliasError(
            f"{source} and {target} lie in one stretch of memory, and are not known to share no byte of it: a copy needs two pools "
            "of their own, or blocks of one that lie in the gaps of the other, equally far apart in both"
        )
