"""Latent attention over a paged cache, as GLM-like models have it: what is cached of a token is one row of a pool.

Each call writes the rows of its own tokens and reads those of all tokens before, in whatever blocks the table says, and
computes the queries while the rows are under way.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from kvstage import PagedPool, Stager


class PagedLatentAttention(nn.Module):
    """`latent` numbers a token are cached, and serve all heads as keys and as values."""

    def __init__(self, stager: Stager, pool: PagedPool, hidden: int, heads: int) -> None:
        super().__init__()
        self.stager, self.pool, self.heads = stager, pool, heads
        (latent,) = pool.row_shape
        self.down = nn.Linear(hidden, latent, bias=False, dtype=pool.dtype)
        self.queries = nn.Linear(hidden, heads * latent, bias=False, dtype=pool.dtype)
        self.up = nn.Linear(heads * latent, hidden, bias=False, dtype=pool.dtype)

    def forward(self, tokens: torch.Tensor, block_table: Sequence[int], start: int) -> torch.Tensor:
        """Tokens [n, hidden] at positions start .. start + n - 1 of the sequence that the table is of: [n, hidden]."""
        fresh = self.down(tokens)
        with self.stager.batch() as batch:
            write = batch.write(self.pool, block_table, start, fresh)
            history = batch.read(self.pool, block_table, 0, start)
        queries = self.queries(tokens).unflatten(-1, (self.heads, -1)).transpose(0, 1)  # [heads, n, latent]
        history.wait()
        latents = torch.cat([history.result(), fresh])  # [start + n, latent]
        seen = torch.ones(len(tokens), len(latents), dtype=torch.bool).tril(start)  # a token sees itself and those before
        keys = latents.expand(self.heads, -1, -1)
        mixed = scaled_dot_product_attention(queries, keys, keys, attn_mask=seen)
        write.wait()  # `fresh` was under way until now
        batch.release()
        return self.up(mixed.transpose(0, 1).flatten(1))
