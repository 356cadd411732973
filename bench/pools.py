"""Rows laid into a paged pool with a shuffled table, by plain indexing: the reference that staging is compared with."""

from dataclasses import dataclass

import torch

BLOCK_SIZE = 32
"""Rows of a block."""
SPARE = 9
"""Blocks of each pool that no table names."""
FILL = 0xA5
"""The byte that every row holds which belongs to nobody. No row of a cache consists of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Paged:
    """A pool [num_blocks, block_size, width], and the table that says which block holds which rows of one sequence."""

    tensor: torch.Tensor
    table: list[int]


def blocks(tokens: int) -> int:
    """Blocks that so many rows take up."""
    return -(-tokens // BLOCK_SIZE)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bytes, flat, sharing its memory: NaN bit patterns count, -0 is not 0."""
    return tensor.view(-1).view(torch.uint8)


def same_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two contiguous tensors hold the same bytes, of which there is at least one."""
    if first.numel() == 0:
        raise ValueError("nothing to compare: the tensors are empty")
    return torch.equal(raw(first), raw(second))


def shuffled_table(tokens: int, seed: int) -> list[int]:
    """The blocks of so many rows in a pool with SPARE blocks more, in an order that the seed shuffles."""
    needed = blocks(tokens)
    return torch.randperm(needed + SPARE, generator=torch.Generator().manual_seed(seed))[:needed].tolist()


def empty_pool(tokens: int, width: int, seed: int) -> Paged:
    """A bf16 pool with room for so many rows and some spare blocks, all FILL, and a shuffled table into it."""
    needed = blocks(tokens)
    tensor = torch.empty(needed + SPARE, BLOCK_SIZE, width, dtype=torch.bfloat16)
    raw(tensor).fill_(FILL)
    return Paged(tensor, shuffled_table(tokens, seed))


def filled_pool(rows: torch.Tensor, seed: int) -> Paged:
    """The pool of `empty_pool`, the same table for the same seed, that holds these rows ([tokens, width] bf16)."""
    tokens, width = rows.shape
    paged = empty_pool(tokens, width, seed)
    for k, block in enumerate(paged.table):
        part = rows[k * BLOCK_SIZE : (k + 1) * BLOCK_SIZE]
        paged.tensor[block, : len(part)] = part
    return paged
