"""The kernel that moves rows between a pool and packed rows, in either direction: runs of bytes, each copied as a whole.

A run is rows that lie side by side in one block of the pool, so a whole block is one run. Bytes are copied one by one in
the source, and by the compiler's own memcpy in the program: it takes any alignment, which vector types do not.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import DeviceError
from ..device import Index
from ..row_cache import Remembered, unchanging
from .driver import Driver
from .memory import OpenCLRows

ITEMS = 256
"""Work-items at most: enough to share the runs evenly among the cores, few enough that starting them costs nothing."""

SOURCE = """
__kernel void move(__global const uchar *source, __global uchar *target, __global const long *runs, long count) {
    long items = get_global_size(0), item = get_global_id(0);
    for (long i = item * count / items; i < (item + 1) * count / items; i++) {
        __global const uchar *restrict from = source + runs[3 * i];
        __global uchar *restrict to = target + runs[3 * i + 1];
        long bytes = runs[3 * i + 2];
        for (long k = 0; k < bytes; k++) to[k] = from[k];
    }
}
"""

Runs: TypeAlias = NDArray[np.int64]
"""[runs, 3]: offset in the pool's memory, offset in the packed rows' memory, bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """An index cut into runs: the block of each, its first row there, its first packed row, and its rows; least and most block."""

    block: Index
    row: Index
    first: Index
    count: Index
    least: int
    most: int


class Mover:
    """The built program, and what it needs to be launched. Not for two threads at once."""

    def __init__(self, driver: Driver) -> None:
        self._cl = driver.cl
        self._context = driver.context
        program = driver.cl.Program(driver.context, SOURCE).build(cache_dir=False)  # the driver has a cache of its own
        self._kernel = driver.cl.Kernel(program, "move")
        self._cuts: Remembered[Cut] = Remembered()

    def gather(self, commands: Any, pool: OpenCLRows, index: Index, packed: OpenCLRows, wait_for: list[Any]) -> tuple[Any, Any]:
        """Launches it from the pool to packed rows: the event, and what must live until it has ended."""
        return self._launch(commands, pool, packed, runs(pool, self._cut(pool, index), packed), wait_for)

    def scatter(self, commands: Any, packed: OpenCLRows, pool: OpenCLRows, index: Index, wait_for: list[Any]) -> tuple[Any, Any]:
        """Launches it from packed rows to the pool: the event, and what must live until it has ended."""
        return self._launch(commands, packed, pool, runs(pool, self._cut(pool, index), packed)[:, [1, 0, 2]], wait_for)

    def _cut(self, pool: OpenCLRows, index: Index) -> Cut | None:
        """That of before, if the index can't have changed since."""
        size = pool.array.shape[1]
        if not len(index):
            return None
        if not unchanging(index):
            return cut(index, size)
        return self._cuts.of(index, (size,), len(index), lambda: cut(index, size))

    def _launch(self, commands: Any, source: OpenCLRows, target: OpenCLRows, table: Runs, wait_for: list[Any]) -> tuple[Any, Any]:
        if not len(table):
            return self._cl.enqueue_marker(commands, wait_for=wait_for), None
        flags = self._cl.mem_flags
        listed = self._cl.Buffer(self._context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(table))
        self._kernel.set_args(source.memory.buffer, target.memory.buffer, listed, np.int64(len(table)))
        items = min(ITEMS, len(table))
        return self._cl.enqueue_nd_range_kernel(commands, self._kernel, (items,), (1,), wait_for=wait_for), listed


def cut(index: Index, size: int) -> Cut:
    """Cuts the rows `index` of a pool of `size` rows a block, at least one, if they leave a block or do not lie side by side."""
    block = index // size
    breaks = np.flatnonzero((index[1:] - index[:-1] != 1) | (block[1:] != block[:-1]))
    first = np.concatenate([np.zeros(1, np.int64), breaks + 1])
    at = block[first]
    count = np.diff(first, append=len(index))
    return Cut(at, index[first] - at * size, first, count, int(at.min()), int(at.max()))


def runs(pool: OpenCLRows, cut: Cut | None, packed: OpenCLRows) -> Runs:
    """The runs of a cut, in their order; None is of no rows. Raises DeviceError if the pool or the target lacks such rows."""
    slots, size, row_bytes = pool.array.shape
    rows = int(cut.count.sum()) if cut else 0
    if packed.array.shape != (rows, row_bytes):
        raise DeviceError(f"{rows} rows of {row_bytes} bytes do not fit packed rows of shape {list(packed.array.shape)}")
    if cut is None:
        return np.empty((0, 3), np.int64)
    if cut.least < 0 or cut.most >= slots:  # the rows of a run are in one block
        raise DeviceError(f"rows by number must be some of 0 to {slots * size - 1}: the kernel would leave the pool's memory")
    in_pool = cut.block * pool.array.strides[0] + (cut.row * row_bytes + pool.offset)
    return np.stack([in_pool, cut.first * row_bytes + packed.offset, cut.count * row_bytes], axis=1)
