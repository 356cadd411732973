"""The legs of the prefill benchmark: ways to move the same rows over the same device, by the library and by hand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage.devices.host_kernels import Bytes
from kvstage_model.language.buffers import Memory

from .glm import Cache
from .pools import BLOCK_SIZE, FILL, Paged, empty_pool, filled_pool, raw, same_bytes

STREAM = "by hand"
SCHEMES = ("per_row", "per_block")


class WrongBytesError(AssertionError):
    """A leg moved other bytes than the forward pass made."""


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """One way to move all rows: `run()` does it, into `targets`, which must then hold the bytes of `expected`.

    `by` is library, by hand or flat; `direction` read or write; `scheme` per_row, per_block or one copy.
    """

    by: str
    scheme: str
    direction: str
    run: Callable[[], None]
    targets: list[torch.Tensor]
    expected: list[torch.Tensor]

    @property
    def name(self) -> str:
        """What the table calls it."""
        return "one flat copy" if self.by == "flat" else f"{self.scheme} {self.direction}, {self.by}"

    def verify(self) -> int:
        """Run once into targets that hold nothing of it, and compare: the bytes compared. Raises WrongBytesError."""
        for target in self.targets:
            raw(target).fill_(FILL)
        self.run()
        for number, (target, expected) in enumerate(zip(self.targets, self.expected, strict=True)):
            if not same_bytes(target, expected):
                wrong, total = int((raw(target) != raw(expected)).sum()), len(raw(expected))
                raise WrongBytesError(f"{self.name}: {wrong} of {total} bytes of cache {number} are wrong: nothing was timed")
        return sum(len(raw(target)) for target in self.targets)


def legs(device: ThreadDevice, caches: tuple[Cache, ...]) -> list[Leg]:
    """The flat copy first, then the legs of each scheme. Their memory has been written to once, so its pages exist."""
    rows = [cache.rows for cache in caches]
    pools = [filled_pool(each, seed) for seed, each in enumerate(rows)]
    outs = [torch.full_like(each, 0) for each in rows]
    written = [empty_pool(len(each), each.shape[1], seed) for seed, each in enumerate(rows)]
    flat = torch.cat([raw(each) for each in rows])
    flat_out = torch.full_like(flat, 0)

    def one_copy() -> None:
        device.copy(STREAM, _handle(device, flat, 1), _handle(device, flat_out, 1))
        device.synchronize(STREAM)

    found = [Leg("flat", "one copy", "read", one_copy, [flat_out], [flat])]
    written_pages, pages = [pool.tensor for pool in written], [pool.tensor for pool in pools]
    loops = (row_loop, row_loop_of_writes), (block_loop, block_loop_of_writes)
    for scheme, (reading, writing) in zip(SCHEMES, loops, strict=True):
        found += [
            Leg("by hand", scheme, "read", _by_hand(device, reading, pools, outs), outs, rows),
            Leg("library", scheme, "read", _library_read(device, scheme, pools, outs), outs, rows),
            Leg("by hand", scheme, "write", _by_hand(device, writing, written, rows), written_pages, pages),
            Leg("library", scheme, "write", _library_write(device, scheme, written, rows), written_pages, pages),
        ]
    return found


def _library_read(device: ThreadDevice, scheme: str, pools: list[Paged], outs: list[torch.Tensor]) -> Callable[[], None]:
    stager = Stager(device, scheme=scheme)
    paged = [(PagedPool(pool.tensor), pool.table) for pool in pools]

    def run() -> None:
        for (pool, table), out in zip(paged, outs, strict=True):
            stager.read(pool, table, 0, len(out), out=out).wait()

    return run


def _library_write(device: ThreadDevice, scheme: str, pools: list[Paged], rows: list[torch.Tensor]) -> Callable[[], None]:
    stager = Stager(device, scheme=scheme)
    paged = [(PagedPool(pool.tensor), pool.table) for pool in pools]

    def run() -> None:
        for (pool, table), each in zip(paged, rows, strict=True):
            stager.write(pool, table, 0, each).wait()

    return run


Loop = Callable[[ThreadDevice, Bytes, list[int], Bytes, Bytes], None]
"""Moves one cache: device, pool [num_blocks, block_size, row_bytes], table, staging [block_size, row_bytes] that is
used again and again, and the rows at the host, [tokens, row_bytes]. All uint8."""


def row_loop(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, out: Bytes) -> None:
    """What the scheme per_row replaces, as one writes it."""
    staged = stage[:1]
    for row in range(len(out)):
        start = row % BLOCK_SIZE
        device.copy(STREAM, pool[table[row // BLOCK_SIZE], start : start + 1], staged)
        device.synchronize(STREAM)
        device.host_copy(staged, out[row : row + 1])


def block_loop(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, out: Bytes) -> None:
    """What the scheme per_block replaces, as one writes it."""
    for k, block in enumerate(table):
        part = out[k * BLOCK_SIZE : (k + 1) * BLOCK_SIZE]
        staged = stage[: len(part)]
        device.copy(STREAM, pool[block, : len(part)], staged)
        device.synchronize(STREAM)
        device.host_copy(staged, part)


def row_loop_of_writes(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, rows: Bytes) -> None:
    """The same the other way."""
    staged = stage[:1]
    for row in range(len(rows)):
        start = row % BLOCK_SIZE
        device.host_copy(rows[row : row + 1], staged)
        device.copy(STREAM, staged, pool[table[row // BLOCK_SIZE], start : start + 1])
        device.synchronize(STREAM)


def block_loop_of_writes(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, rows: Bytes) -> None:
    """The same the other way."""
    for k, block in enumerate(table):
        part = rows[k * BLOCK_SIZE : (k + 1) * BLOCK_SIZE]
        staged = stage[: len(part)]
        device.host_copy(part, staged)
        device.copy(STREAM, staged, pool[block, : len(part)])
        device.synchronize(STREAM)


def _by_hand(device: ThreadDevice, loop: Loop, pools: list[Paged], at_host: list[torch.Tensor]) -> Callable[[], None]:
    def arguments() -> Iterator[tuple[Bytes, list[int], Bytes, Bytes]]:
        for pool, rows in zip(pools, at_host, strict=True):
            blocks, size, width = pool.tensor.shape
            pages = device.view(Memory.DEVICE, raw(pool.tensor).view(blocks, size, -1))
            stage = _handle(device, torch.zeros(size, width, dtype=rows.dtype), size)
            yield pages, pool.table, stage, _handle(device, rows, len(rows))

    prepared = list(arguments())

    def run() -> None:
        for pages, table, stage, rows in prepared:
            loop(device, pages, table, stage, rows)

    return run


def _handle(device: ThreadDevice, tensor: torch.Tensor, rows: int) -> Bytes:
    """The device's handle on a contiguous tensor: [rows, row_bytes]."""
    handle: Bytes = device.view(Memory.PINNED, raw(tensor).view(1, rows, -1))[0]
    return handle
