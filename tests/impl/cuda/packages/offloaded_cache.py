"""transformers: three steps of a small model with an offloaded cache, on the default stream or on one of its own."""

import contextlib
import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import kvstage
from tests.impl.cuda.packages.under_schedules import tell

config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
torch.manual_seed(0)
model = LlamaForCausalLM(config).eval()


@torch.no_grad()
def logits(device: str) -> torch.Tensor:
    model.to(device)
    cache = DynamicCache(config=config, offloading=True) if device == "cuda" else DynamicCache(config=config)
    tokens, rows = torch.tensor([[1, 5, 9, 3]], device=device), []
    for _ in range(3):
        result = model(tokens, past_key_values=cache, use_cache=True)
        tokens = result.logits[:, -1:].argmax(-1)
        rows.append(result.logits[:, -1].cpu())
    model.to("cpu")
    return torch.cat(rows)


def on_a_stream() -> torch.Tensor:
    with torch.cuda.stream(torch.cuda.Stream()) if "side" in sys.argv else contextlib.nullcontext():
        return logits("cuda")


with kvstage.simulated_cuda():
    pass
tell(on_a_stream, logits("cpu"))
