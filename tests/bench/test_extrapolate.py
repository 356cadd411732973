"""The operations of a step against torch's own counter and against sums by hand; the bus against published ratios."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache

from bench.extrapolate import PCIE_5, operations, selected, share
from bench.sizes import REAL, Sizes


def counted(model: Any, tokens: list[int]) -> list[int]:
    """What torch counts of each step, convolutions apart: they have no matrix product."""
    cache, found = DynamicCache(config=model.config), []
    for number in tokens:
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model(input_ids=torch.arange(number)[None], cache=cache, use_cache=True, logits_to_keep=1)
        found.append(sum(count for name, count in counter.get_flop_counts()["Global"].items() if "conv" not in str(name)))
    return found


@pytest.mark.extended
def test_torch_counts_the_same(tiny: Sizes, tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_model.config.get_text_config()
    monkeypatch.setattr(config, "_attn_implementation", "eager")  # the others hide their products from the counter
    monkeypatch.setattr(config, "_experts_implementation", "eager")
    assert counted(tiny_model, [100, 70, 1, 5]) == [
        operations(tiny, 0, 100),
        operations(tiny, 100, 70),
        operations(tiny, 170, 1),
        operations(tiny, 171, 5),
    ]
    for name in ("heads", "q_lora", "index_heads", "experts", "expert_width", "linear_heads", "dense_width", "vocab"):
        other = replace(tiny, **{name: getattr(tiny, name) + 1})
        assert operations(other, 100, 70) != operations(tiny, 100, 70), name


def test_a_first_token_of_the_released_model_by_hand() -> None:
    attention = 4096 * 1536 + 4096 * 512 + 1536 * 64 * 256 + 64 * 256 * 4096  # projections
    attention += 512 * 64 * 512  # one latent row expanded to 256 + 256 elements for each head
    attention += 64 * 512  # one key, one value
    indexer = 1536 * 32 * 128 + 4096 * 128 + 4096 * 128 + 4096 * 32  # no pool of 4 is complete yet
    linear = 4 * 4096 * 8192 + 2 * (4096 * 128 + 128 * 8192) + 4096 * 64
    experts = 4096 * 288 + 9 * 3 * 4096 * 2048
    streams = 2 * (24 * 4 * 4096 + 16 * 4096)
    layers = 11 * (attention + indexer) + 34 * linear + 3 * 3 * 4096 * 12288 + 42 * experts + 45 * streams
    assert operations(REAL, 0, 1) == 2 * (layers + 4096 * 154_880)


def test_a_serving_engine_attends_to_what_was_selected() -> None:
    """Decoding at 8192: 2051 rows as they are, in 512 elements, and the query and the result brought there and back."""
    reference, serving = operations(REAL, 8192, 1), operations(REAL, 8192, 1, serving=True)
    expanded = 8193 * 64 * 512 * (512 + 1)
    as_they_are = 64 * 512 * 512 + 2051 * 64 * 2 * 512
    assert reference - serving == 2 * 11 * (expanded - as_they_are)
    reference, serving = operations(REAL, 0, 2048), operations(REAL, 0, 2048, serving=True)
    assert reference - serving == 2 * 11 * 64 * 512 * (2048 * 2047 // 2), "all are selected, but no token sees those behind it"


def test_each_token_attends_to_what_is_selected_of_the_rows_up_to_its_own() -> None:
    for history in range(9):
        for tokens in range(1, 9):
            for most in range(1, 20):
                assert selected(history, tokens, most) == sum(min(history + k, most) for k in range(1, tokens + 1))


def test_the_bus_costs_what_was_published() -> None:
    """By row 470 to 1,590 times the bytes' own 2.6 ms, by block 16 to 50 times, one wait 6 to 16 times."""
    size = 11 * 8192 * 1538
    own = size / 53e9
    assert own == pytest.approx(2.6e-3, rel=0.01)
    for copies, waits, least, most in ((180_224, 180_224, 470, 1590), (5632, 5632, 16, 50), (5632, 1, 6, 16)):
        low, high = PCIE_5.seconds(copies, waits, 0, size)
        assert low / own == pytest.approx(least, rel=0.04)
        assert high / own == pytest.approx(most, rel=0.04)
    assert PCIE_5.seconds(0, 0, 2, 0) == (6e-6, 6e-6)


def test_a_share_is_a_part_of_the_whole() -> None:
    assert share(1.0, 3.0) == 0.25
