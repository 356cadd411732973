"""The attention of the examples against the same attention over a cache that is one plain tensor, bit by bit."""

import importlib.util
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from kvstage import HostDevice, PagedPool, Stager, ThreadDevice
from tests.support.paths import ROOT
from tests.support.plain import plain_read, random_blocks, raw, same

FILE = ROOT / "examples" / "attention.py"
HIDDEN, HEADS, LATENT, SIZE = 48, 4, 32, 4
TABLE = [7, 2, 3, 11, 0, 5]
CHUNKS = [7, 1, 4, 1, 9]
"""A prefill, and steps of one token and of some."""


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("attention_example", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain_attention(layer: Any, tokens: torch.Tensor, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The layer's own weights, over a cache that is a tensor: what it gives, and the cache with the new rows behind it."""
    latents = torch.cat([cache, layer.down(tokens)])
    n, start = len(tokens), len(cache)
    queries = layer.queries(tokens).view(n, HEADS, LATENT).transpose(0, 1)
    seen = torch.tensor([[column <= start + row for column in range(start + n)] for row in range(n)])
    keys = latents.expand(HEADS, -1, -1)
    mixed = scaled_dot_product_attention(queries, keys, keys, attn_mask=seen)
    return layer.up(mixed.transpose(0, 1).reshape(n, HEADS * LATENT)), latents


@pytest.mark.parametrize("device", [HostDevice, ThreadDevice])
@pytest.mark.parametrize("scheme", ["auto", "per_row", "direct", "gather"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_plain_attention_bit_by_bit(example: Any, device: Any, scheme: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    blocks = random_blocks(2, 12, SIZE, (LATENT,), dtype)
    cache = torch.empty(0, LATENT, dtype=dtype)
    compared = 0
    with device() as made, Stager(made, scheme=scheme) as stager, torch.no_grad():
        layer = example.PagedLatentAttention(stager, PagedPool(blocks.tensor), HIDDEN, HEADS)
        for n in CHUNKS:
            tokens = torch.randn(n, HIDDEN, dtype=dtype)
            given = layer(tokens, TABLE, len(cache))
            expected, cache = plain_attention(layer, tokens, cache)
            assert same(given, expected)
            assert same(plain_read(blocks.tensor, TABLE, 0, len(cache)), cache)
            compared += raw(given).numel()
    assert compared == sum(CHUNKS) * HIDDEN * dtype.itemsize


def test_rows_that_are_lost_change_what_it_gives(example: Any) -> None:
    """The twin: the comparison sees one wrong row of the cache."""
    torch.manual_seed(1)
    pool = PagedPool(torch.zeros(12, SIZE, LATENT))
    with Stager(HostDevice()) as stager, torch.no_grad():
        layer = example.PagedLatentAttention(stager, pool, HIDDEN, HEADS)
        first, second = torch.randn(6, HIDDEN), torch.randn(3, HIDDEN)
        layer(first, TABLE, 0)
        expected, _ = plain_attention(layer, second, plain_read(pool.tensor, TABLE, 0, 6))
        pool.tensor[TABLE[1], 1] = 0  # row 5
        assert not same(layer(second, TABLE, 6), expected)


def test_it_is_a_module_of_about_forty_lines(example: Any) -> None:
    assert issubclass(example.PagedLatentAttention, nn.Module)
    assert len(FILE.read_text(encoding="utf-8").splitlines()) < 50
    assert "(attention.py)" in (FILE.parent / "README.md").read_text(encoding="utf-8")
