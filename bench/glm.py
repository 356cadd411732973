"""The caches of a GLM-5.3-Flash prefill, from a real forward pass of transformers' `glm5_next`.

The weights are random and everything that no cached row depends on is small; the rows have the widths of the
released model. Needs transformers (`pip install 'kvstage[transformers]'`), and no network.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

LATENT_WIDTH = 512
"""Elements of a latent row: kv_lora_rank 512, and no rotary part."""
INDEXER_WIDTH = 128 + 128 + 1
"""Elements of an indexer row: key, gate scores, and one that says the token is valid."""
LAYERS = 11
"""The sparse attention layers of the released model; its 34 linear attention layers page nothing."""
TOKENS = 8192
CHUNK = 1024
"""Tokens of one forward pass: a chunked prefill, as serving code does it."""
SEED = 5_3


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """One cache of one layer: `rows` is [tokens, width] bf16, contiguous, on the CPU. `kind` is latent or indexer."""

    layer: int
    kind: str
    rows: torch.Tensor


class GeometryError(AssertionError):
    """The installed transformers keeps its caches in another shape than this module was written for."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps torch to one thread: its sums come out the same, and no idle OpenMP pool spins beside a device's worker."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def forward_caches(tokens: int = TOKENS) -> tuple[Cache, ...]:
    """The 22 caches after a prefill of so many tokens (at least 1): latent, then indexer, layer by layer.

    Every token of the input differs, so all rows of a cache differ too: a row in a wrong place never goes unseen.
    One build of torch gives the same bytes each time. Takes some 15 s and 0.9 GB for 8192 tokens. Raises GeometryError
    where a cache has not the shape of the released model.
    """
    from transformers import DynamicCache, Glm5NextTextConfig
    from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextModel

    config = Glm5NextTextConfig(
        num_hidden_layers=LAYERS,
        layer_types=["indexed_attention"] * LAYERS,
        indexer_types=["full"] * LAYERS,
        mlp_layer_types=["dense"] * LAYERS,
        kv_lora_rank=LATENT_WIDTH,
        qk_rope_head_dim=0,
        index_head_dim=128,
        index_topk=2048,
        index_kpool=4,
        index_n_heads=1,
        vocab_size=tokens,
        pad_token_id=None,
        hidden_size=64,
        intermediate_size=64,
        num_attention_heads=1,
        num_key_value_heads=1,
        q_lora_rank=32,
        qk_nope_head_dim=16,
        v_head_dim=16,
    )
    with one_thread(), torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(SEED)
        model = Glm5NextTextModel(config).to(torch.bfloat16).eval()
        for layer in model.layers:  # initialised to ones, which makes all 128 gate scores of a row one number
            torch.nn.init.normal_(layer.self_attn.indexer.index_kpool_compress_gate, std=0.1)
        ids = torch.randperm(tokens)[None]
        cache = DynamicCache(config=config)
        # The argument was called past_key_values before transformers 5.24, and the old name warns since.
        name = "cache" if "cache" in inspect.signature(Glm5NextTextModel.forward).parameters else "past_key_values"
        for done in range(0, tokens, CHUNK):
            _progress(done, tokens)
            model(input_ids=ids[:, done : done + CHUNK], use_cache=True, **{name: cache})
        _progress(tokens, tokens)
    # Clones made out here: a tensor of inference mode refuses to be written to elsewhere.
    return tuple(Cache(layer, kind, rows.clone()) for layer, kind, rows in _rows(cache, tokens))


def _rows(cache: Any, tokens: int) -> Iterator[tuple[int, str, torch.Tensor]]:
    """The rows of every cache, once their geometry has been looked at."""
    found = list(cache.layers)
    _require("number of layers", len(found), LAYERS)
    for index, layer in enumerate(found):
        _require(f"latent cache of layer {index}", tuple(layer.keys.shape), (1, 1, tokens, LATENT_WIDTH))
        _require(f"values of layer {index}", tuple(layer.values.shape), (1, 1, tokens, 0))
        _require(f"indexer cache of layer {index}", tuple(layer.indexer_keys.shape), (1, tokens, INDEXER_WIDTH))
        _require(f"dtypes of layer {index}", {layer.keys.dtype, layer.indexer_keys.dtype}, {torch.bfloat16})
        yield index, "latent", layer.keys[0, 0]
        yield index, "indexer", layer.indexer_keys[0]


def _require(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise GeometryError(f"{what}: found {found}, expected {expected}: transformers before 5.18 caches other rows")


def _progress(done: int, tokens: int) -> None:
    """One line that rewrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\rforward pass: {done} of {tokens} tokens", end="\n" if done == tokens else "", file=sys.stderr, flush=True)
