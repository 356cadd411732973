"""The sizes of a GLM-5.3-Flash model: the released one's, and those of the small one that a CPU carries.

The two share everything that a cached row depends on in number, width and place: 45 layers of which every fourth is
sparse attention, latent rows of 512 elements, indexer rows of 257, pools of 4 tokens in the indexer.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch

from .glm import INDEXER_WIDTH, LATENT_WIDTH, SEED

INDEX_HEAD_DIM = 128
INDEX_KPOOL = 4
"""Tokens that the indexer scores as one. The class default of transformers is 16."""
STREAMS = 4
"""Residual streams of a hyper-connection."""
CONV_KERNEL = 4
DSA_EVERY = 4
"""Every fourth layer is sparse attention (3, 7, ..., 43), the others are linear attention."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What may differ between the released model and a small one. All in elements, or numbers of things."""

    layers: int
    hidden: int
    heads: int
    q_lora: int
    qk_nope: int
    v_head: int
    index_heads: int
    index_topk: int
    dense_layers: int
    dense_width: int
    experts: int
    experts_per_token: int
    expert_width: int
    linear_heads: int
    linear_head_dim: int
    vocab: int

    @property
    def dsa_layers(self) -> int:
        """Sparse attention layers: those with caches of rows."""
        return self.layers // DSA_EVERY

    @property
    def linear_layers(self) -> int:
        """Linear attention layers: a state of fixed size each, nothing paged."""
        return self.layers - self.dsa_layers

    @property
    def row_caches(self) -> int:
        """Paged caches: a latent and an indexer cache for each sparse attention layer."""
        return 2 * self.dsa_layers

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's rows in all caches, bf16."""
        return self.dsa_layers * (LATENT_WIDTH + INDEXER_WIDTH) * 2


REAL = Sizes(
    layers=45,
    hidden=4096,
    heads=64,
    q_lora=1536,
    qk_nope=256,
    v_head=256,
    index_heads=32,
    index_topk=2048,
    dense_layers=3,
    dense_width=12288,
    experts=288,
    experts_per_token=8,
    expert_width=2048,
    linear_heads=64,
    linear_head_dim=128,
    vocab=154_880,
)
"""The released model."""

SMALL = Sizes(
    layers=45,
    hidden=128,
    heads=2,
    q_lora=64,
    qk_nope=32,
    v_head=32,
    index_heads=1,
    index_topk=2048,
    dense_layers=3,
    dense_width=384,
    experts=16,
    experts_per_token=8,
    expert_width=64,
    linear_heads=1,
    linear_head_dim=16,
    vocab=8192,
)
"""The model that is measured: all layers, so that 15 forward passes of 8192 tokens end in minutes on two cores."""


def side_by_side(measured: Sizes, real: Sizes = REAL) -> list[tuple[str, int, int]]:
    """Every size: its name, the measured model's, the released model's. Those that can't differ come last."""
    found = [(each.name, getattr(measured, each.name), getattr(real, each.name)) for each in fields(Sizes)]
    same = {"latent row": LATENT_WIDTH, "indexer row": INDEXER_WIDTH, "index_kpool": INDEX_KPOOL}
    same |= {"streams": STREAMS, "conv kernel": CONV_KERNEL}
    return found + [(name, value, value) for name, value in same.items()]


def text_config(sizes: Sizes) -> dict[str, Any]:
    """The arguments of transformers' `Glm5NextTextConfig`."""
    return {
        "num_hidden_layers": sizes.layers,
        "layer_types": [
            "indexed_attention" if layer % DSA_EVERY == DSA_EVERY - 1 else "linear_attention" for layer in range(sizes.layers)
        ],
        "indexer_types": ["full"] * sizes.layers,
        "mlp_layer_types": ["dense"] * sizes.dense_layers + ["sparse"] * (sizes.layers - sizes.dense_layers),
        "hidden_size": sizes.hidden,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.heads,
        "q_lora_rank": sizes.q_lora,
        "qk_nope_head_dim": sizes.qk_nope,
        "v_head_dim": sizes.v_head,
        "kv_lora_rank": LATENT_WIDTH,
        "qk_rope_head_dim": 0,
        "index_head_dim": INDEX_HEAD_DIM,
        "index_kpool": INDEX_KPOOL,
        "index_n_heads": sizes.index_heads,
        "index_topk": sizes.index_topk,
        "intermediate_size": sizes.dense_width,
        "n_routed_experts": sizes.experts,
        "num_experts_per_tok": sizes.experts_per_token,
        "moe_intermediate_size": sizes.expert_width,
        "linear_num_heads": sizes.linear_heads,
        "linear_head_dim": sizes.linear_head_dim,
        "linear_conv_kernel_dim": CONV_KERNEL,
        "hc_mult": STREAMS,
        "vocab_size": sizes.vocab,
        "pad_token_id": None,
    }


def build_model(sizes: Sizes) -> Any:
    """A `Glm5NextForConditionalGeneration` of transformers with these sizes: bf16, random weights, the same ones each time.

    Its vision part is as small as it can be, and not used. The caller's random numbers are left alone.
    """
    from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration

    vision = {"depth": 1, "hidden_size": 16, "num_heads": 1, "out_hidden_size": 16, "intermediate_size": 16}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = Glm5NextForConditionalGeneration(Glm5NextConfig(text_config=text_config(sizes), vision_config=vision))
        for layer in model.model.language_model.layers:
            if layer.block_type == "indexed_attention":  # initialised to ones, which makes all 128 gate scores one number
                torch.nn.init.normal_(layer.self_attn.indexer.index_kpool_compress_gate, std=0.1)
    return model.to(torch.bfloat16).eval()
