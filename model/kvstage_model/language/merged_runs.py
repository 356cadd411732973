"""Runs across blocks: neighbouring rows of the pool are moved together, wherever the table allows.

How many runs that gives depends on the table, so `merged` makes a list; it can't be asked symbolically. It folds the runs
of `by_block` with `joins` and `joined`, and the proof is by induction over that fold, with these two functions.
"""

from bisect import bisect_right

from .paged_rows import PagedRows
from .partitions import Run, Runs, by_block
from .ranges import Positive


def in_one_slot(run: Run, block_size: int) -> Run:
    """A run of a block, as a run of a pool that is one slot: row r of block b is row b * block_size + r."""
    return Run(run.position, run.count, 0, run.slot * block_size + run.start)


def joins(last: Run, following: Run, most: int) -> bool:
    """Whether a run goes on where the last one ends, in the transfer and in the pool, and both are no more than `most` rows."""
    on_in_transfer = last.position + last.count == following.position
    on_in_pool = (last.slot == following.slot) & (last.start + last.count == following.start)
    return on_in_transfer & on_in_pool & (last.count + following.count <= most)


def joined(last: Run, following: Run) -> Run:
    """Both as one run."""
    return Run(last.position, last.count + following.count, last.slot, last.start)


def merged(rows: PagedRows, most: Positive) -> Runs:
    """One run for each stretch of rows that lie side by side in the pool, of up to `most` rows or one block.

    The pool is one slot of num_blocks * block_size rows: only if no bytes lie between its blocks.
    """
    blocks = by_block(rows)
    found: list[Run] = []
    for i in range(blocks.number):
        run = in_one_slot(blocks.part(i), rows.block_size)
        if found and joins(found[-1], run, most):
            found[-1] = joined(found[-1], run)
        else:
            found.append(run)
    starts = [run.position for run in found]

    def address(position: int) -> tuple[int, int]:
        block, row = rows.address(position)
        return 0, block * rows.block_size + row

    def holder(position: int) -> int:
        return bisect_right(starts, position) - 1

    longest = max(most, rows.block_size)
    whole = rows.num_blocks * rows.block_size
    return Runs(len(found), found.__getitem__, longest, holder, rows.stop - rows.start, 1, whole, address)
