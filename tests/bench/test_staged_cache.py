"""The cache layers in transformers' own hands: tokens, rows and calls, and what they refuse."""

from typing import Any

import pytest
import torch
from transformers import Cache, DynamicCache

from bench.pools import FILL, raw, same_bytes
from bench.staged_cache import Call, Log, StagedLayer, staged_cache, staged_rows
from kvstage import Stager, ThreadDevice
from tests.support.tiers import often

PROMPT, NEW = 41, 4
ROWS = PROMPT + NEW - 1
"""The last token that `generate` gives was never put in."""


def generated(model: Any, ids: torch.Tensor, cache: Cache) -> list[int]:
    tokens: list[int] = model.generate(ids[None, :PROMPT], cache=cache, max_new_tokens=NEW, do_sample=False, pad_token_id=0)[
        0
    ].tolist()
    return tokens


@pytest.mark.parametrize("scheme", often(["per_row", "per_block", "direct", "gather_pinned"], 1))
def test_generate_gives_the_tokens_and_caches_the_rows_of_no_staging(scheme: str, tiny_model: Any, ids: torch.Tensor) -> None:
    plain, log = DynamicCache(config=tiny_model.config), Log()
    expected = generated(tiny_model, ids, plain)
    with ThreadDevice() as device, Stager(device, scheme=scheme) as stager:
        cache = staged_cache(tiny_model.config, stager, device, 64, log)
        assert generated(tiny_model, ids, cache) == expected
    assert len(expected) == PROMPT + NEW
    indexed = [layer for layer in plain.layers if hasattr(layer, "indexer_keys")]
    rows = [each for layer in indexed for each in (layer.keys[0, 0], layer.indexer_keys[0])]
    found = list(staged_rows(cache))
    assert [each.length for each in found] == [ROWS] * 4 == [len(each) for each in rows]
    for staged, row in zip(found, rows, strict=True):
        assert same_bytes(staged.rows.paged()[:ROWS].contiguous(), row.contiguous())
        assert set(raw(staged.rows.paged()[ROWS:].contiguous()).tolist()) == {FILL}  # and no other row was touched
        unused = [block for block in range(staged.rows.pool.num_blocks) if block not in staged.rows.table]
        assert set(raw(staged.rows.pool.tensor[unused]).tolist()) == {FILL}


def test_a_step_reads_the_history_and_writes_its_own_rows(tiny_model: Any, ids: torch.Tensor) -> None:
    log = Log()
    with torch.inference_mode(), ThreadDevice() as device, Stager(device, scheme="per_block") as stager:
        cache = staged_cache(tiny_model.config, stager, device, 64, log)
        tiny_model(input_ids=ids[None, :40], cache=cache, use_cache=True)
        assert log.calls == [Call("write", number, 0, 40) for number in range(4)]  # a fresh sequence reads no page
        log.calls.clear()
        tiny_model(input_ids=ids[None, 40:43], cache=cache, use_cache=True)
        assert log.calls == [call for number in range(4) for call in (Call("read", number, 0, 40), Call("write", number, 40, 43))]
        assert log.seconds > 0
        assert (device.copies, device.waits) == (4 * 2 + 4 * (2 + 1), 4 * 2 + 4 * (2 + 1))


def test_rows_that_were_forgotten_are_computed_again(tiny_model: Any, ids: torch.Tensor) -> None:
    with torch.inference_mode(), ThreadDevice() as device, Stager(device, scheme="direct") as stager:
        cache = staged_cache(tiny_model.config, stager, device, 64, Log())
        layer = next(layer for layer in cache.layers if isinstance(layer, StagedLayer))
        first = layer.latent.append(torch.full((40, 512), 1.0, dtype=torch.bfloat16)).clone()
        layer.indexer.append(torch.full((40, 257), 1.0, dtype=torch.bfloat16))
        layer.crop(-10)
        assert (layer.get_seq_length(), layer.indexer.length, layer.get_mask_sizes(3)) == (30, 30, (33, 0))
        second = layer.latent.append(torch.full((2, 512), 2.0, dtype=torch.bfloat16))
        assert torch.equal(second[:30], first[:30])
        assert second.shape == (32, 512)
        assert (second[30:] == 2).all()
        layer.reset()
        assert (layer.get_seq_length(), layer.indexer.length, layer.get_max_length()) == (0, 0, 64)


def test_what_a_layer_of_one_sequence_can_t_do_is_refused(tiny_model: Any, ids: torch.Tensor) -> None:
    with torch.inference_mode(), ThreadDevice() as device, Stager(device, scheme="per_block") as stager:
        cache = staged_cache(tiny_model.config, stager, device, 64, Log())
        layer = next(layer for layer in cache.layers if isinstance(layer, StagedLayer))
        with pytest.raises(ValueError, match=r"latent rows of shape \[2, 1, 5, 512\]: a staged layer caches one sequence"):
            tiny_model(input_ids=ids[:10].view(2, 5), cache=cache, use_cache=True)
        assert layer.get_seq_length() == 0
        with pytest.raises(ValueError, match=r"crop\(-1\) of 0 rows"):
            layer.crop(-1)
        with pytest.raises(NotImplementedError, match="beams need a table of blocks each"):
            layer.reorder_cache(torch.tensor([0]))
        for call in (layer.batch_repeat_interleave, layer.batch_select_indices):
            with pytest.raises(NotImplementedError, match="a batch needs a table of blocks for each"):
                call(2)
