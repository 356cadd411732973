"""The kernel that moves rows between a pool and packed rows, in either direction: runs of bytes, each copied as a whole.

A run is rows that lie side by side in one block of the pool, so a whole block is one run. Bytes are copied one by one in
the source, and by the compiler's own memcpy in the program: it takes any alignment, which vector types do not.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .device import Index
from .errors import DeviceError
from .opencl_driver import Driver
from .opencl_memory import Region

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


class Mover:
    """The built program, and what it needs to be launched. Not for two threads at once."""

    def __init__(self, driver: Driver) -> None:
        self._cl = driver.cl
        self._context = driver.context
        program = driver.cl.Program(driver.context, SOURCE).build(cache_dir=False)  # the driver has a cache of its own
        self._kernel = driver.cl.Kernel(program, "move")

    def gather(self, commands: Any, pool: Region, index: Index, packed: Region, wait_for: list[Any]) -> tuple[Any, Any]:
        """Launches it from the pool to packed rows: the event, and what must live until it has ended."""
        return self._launch(commands, pool, packed, runs(pool, index, packed), wait_for)

    def scatter(self, commands: Any, packed: Region, pool: Region, index: Index, wait_for: list[Any]) -> tuple[Any, Any]:
        """Launches it from packed rows to the pool: the event, and what must live until it has ended."""
        return self._launch(commands, packed, pool, runs(pool, index, packed)[:, [1, 0, 2]], wait_for)

    def _launch(self, commands: Any, source: Region, target: Region, table: Runs, wait_for: list[Any]) -> tuple[Any, Any]:
        if not len(table):
            return self._cl.enqueue_marker(commands, wait_for=wait_for), None
        flags = self._cl.mem_flags
        listed = self._cl.Buffer(self._context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(table))
        self._kernel.set_args(source.memory.buffer, target.memory.buffer, listed, np.int64(len(table)))
        items = min(ITEMS, len(table))
        return self._cl.enqueue_nd_range_kernel(commands, self._kernel, (items,), (1,), wait_for=wait_for), listed


def runs(pool: Region, index: Index, packed: Region) -> Runs:
    """The runs of the rows `index` of a pool, in their order. Raises DeviceError where the pool or the target lacks such rows."""
    slots, size, row_bytes = pool.array.shape
    if packed.array.shape != (len(index), row_bytes):
        raise DeviceError(f"{len(index)} rows of {row_bytes} bytes do not fit packed rows of shape {list(packed.array.shape)}")
    if not len(index):
        return np.empty((0, 3), np.int64)
    block = index // size
    breaks = np.flatnonzero((index[1:] - index[:-1] != 1) | (block[1:] != block[:-1]))
    found = np.empty((len(breaks) + 1, 3), np.int64)
    in_pool, first, counts = found[:, 0], found[:, 1], found[:, 2]
    first[0] = 0
    np.add(breaks, 1, out=first[1:])
    np.subtract(first[1:], first[:-1], out=counts[:-1])
    counts[-1] = len(index) - first[-1]
    at = block[first]
    if at.min() < 0 or at.max() >= slots:  # the rows of a run are in one block
        raise DeviceError(f"rows by number must be some of 0 to {slots * size - 1}: the kernel would leave the pool's memory")
    np.subtract(index[first], at * size, out=in_pool)
    found *= row_bytes
    in_pool += at * pool.array.strides[0] + pool.offset
    first += packed.offset
    return found
