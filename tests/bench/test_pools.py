"""Pools made by plain indexing, and the comparison of raw bytes."""

import pytest
import torch

from bench.pools import FILL, SPARE, empty_pool, filled_pool, raw, same_bytes


def test_rows_lie_where_the_table_says_and_nothing_else_is_touched() -> None:
    rows = torch.arange(70 * 3, dtype=torch.float32).to(torch.bfloat16).view(70, 3)
    pool = filled_pool(rows, seed=1)
    assert len(pool.table) == 3
    assert pool.tensor.shape == (3 + SPARE, 32, 3)
    for row in range(70):
        assert same_bytes(pool.tensor[pool.table[row // 32], row % 32], rows[row])
    unused = [block for block in range(3 + SPARE) if block not in pool.table]
    assert len(unused) == SPARE
    rest = [raw(pool.tensor[block]) for block in unused] + [raw(pool.tensor[pool.table[2], 6:])]
    assert set(torch.cat(rest).tolist()) == {FILL}


def test_a_seed_gives_one_table_and_it_is_shuffled() -> None:
    first, again, other = (empty_pool(8192, 1, seed).table for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 256
    assert first not in (sorted(first), sorted(first, reverse=True))
    assert raw(empty_pool(5, 2, 0).tensor).unique().tolist() == [FILL]


def test_bytes_are_compared_and_not_values() -> None:
    patterns = torch.tensor([0x7FC0, 0x7FC1, 0, -0x8000], dtype=torch.int16).view(torch.bfloat16)
    quiet, other, zero, minus = (patterns[k : k + 1] for k in range(4))
    assert quiet.isnan().all()
    assert other.isnan().all()
    assert same_bytes(quiet, quiet.clone())
    assert not same_bytes(quiet, other)
    assert zero == minus
    assert not same_bytes(zero, minus)


def test_an_empty_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        same_bytes(torch.empty(0), torch.empty(0))
