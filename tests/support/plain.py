"""What a transfer means, row by row, and pools to try it on. Nothing here uses the library."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Blocks:
    """A pool of random bytes: `base` is all of its memory, padding too; `tensor` the blocks in it."""

    base: torch.Tensor
    tensor: torch.Tensor

    def memory(self) -> torch.Tensor:
        """A copy of every byte, padding too."""
        return self.base.clone()


def random_bytes(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def random_rows(seed: int, count: int, row: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """[count, *row] of random bits, so NaNs with payloads, infinities and subnormals too."""
    width = torch.Size(row).numel()
    return random_bytes(seed, count * width * dtype.itemsize).view(dtype).view(count, *row)


def random_blocks(seed: int, blocks: int, size: int, row: Sequence[int], dtype: torch.dtype, padding: int = 0) -> Blocks:
    """[blocks, size, *row] with `padding` elements between blocks."""
    block = size * torch.Size(row).numel()
    base = random_bytes(seed, blocks, (block + padding) * dtype.itemsize)
    return Blocks(base, base.view(dtype)[:, :block].unflatten(1, (size, *row)))


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes, so that equal NaN patterns are equal."""
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes, and some."""
    assert first.shape == second.shape
    assert first.dtype == second.dtype
    assert first.numel()
    return torch.equal(raw(first), raw(second))


def plain_read(pool: torch.Tensor, table: Sequence[int], start: int, stop: int) -> torch.Tensor:
    """The definition: row p of the sequence is row p % size of block table[p // size]."""
    size = pool.shape[1]
    return torch.stack([pool[table[p // size], p % size] for p in range(start, stop)])


def plain_write(blocks: Blocks, table: Sequence[int], start: int, rows: torch.Tensor) -> torch.Tensor:
    """All memory of the pool after a write, by the same definition."""
    pool, size = blocks.tensor, blocks.tensor.shape[1]
    after = blocks.memory()
    width = raw(pool[0, 0]).numel()
    for i, row in enumerate(rows):
        p = start + i
        at = p % size * width
        after[table[p // size], at : at + width] = raw(row)
    return after
