"""The caches of `bench.glm`'s forward pass: their geometry is the released model's, and is asserted."""

import pytest
import torch

from bench import glm
from bench.pools import same_bytes


def test_a_prefill_of_two_chunks_has_the_rows_of_the_released_model() -> None:
    caches = glm.forward_caches(1100)
    kinds = [(cache.layer, cache.kind) for cache in caches]
    assert kinds == [(layer, kind) for layer in range(11) for kind in ("latent", "indexer")]
    for cache in caches:
        assert cache.rows.shape == (1100, {"latent": 512, "indexer": 257}[cache.kind])
        assert cache.rows.dtype is torch.bfloat16
        assert cache.rows.is_contiguous()
        assert not cache.rows.is_inference()
        assert len(torch.unique(cache.rows.view(torch.int16), dim=0)) == 1100  # so a row in a wrong place is seen
        if cache.kind == "indexer":
            assert (cache.rows[:, -1] == 1).all()  # every token is valid


def test_the_same_prefill_gives_the_same_bytes_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = glm.forward_caches(40)
    assert torch.equal(torch.rand(3), expected)
    second = glm.forward_caches(40)
    assert all(same_bytes(one.rows, two.rows) for one, two in zip(first, second, strict=True))


def test_other_row_widths_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glm, "INDEXER_WIDTH", 128)
    with pytest.raises(glm.GeometryError, match=r"indexer cache of layer 0: found \(1, 40, 257\), expected \(1, 40, 128\)"):
        glm.forward_caches(40)
