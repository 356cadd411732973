"""Gather and scatter on host memory, against a loop over single rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage.devices.host_kernels import HostKernels

KERNELS = HostKernels()


def pool_of(seed: int, slots: int, size: int, row_bytes: int, padding: int, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """All memory, and the pool in it: [slots, size, row_bytes], `padding` bytes between slots, from byte `offset` on."""
    base = np.random.default_rng(seed).integers(0, 256, offset + slots * (size * row_bytes + padding), np.uint8)
    stride = size * row_bytes + padding
    return base, np.lib.stride_tricks.as_strided(base[offset:], (slots, size, row_bytes), (stride, row_bytes, 1))


def both_ways_are_right(pool, base, index, seed: int = 5) -> int:
    """Gathers and scatters `index`, row by row and by the kernels; how many rows were compared."""
    size, row_bytes = pool.shape[1:]
    before, packed = base.copy(), np.zeros((len(index), row_bytes), np.uint8)
    KERNELS.gather(pool, index, packed)
    assert [row.tobytes() for row in packed] == [pool[i // size, i % size].tobytes() for i in index.tolist()]
    assert np.array_equal(base, before)
    rows = np.random.default_rng(seed).integers(0, 256, packed.shape, np.uint8)
    kept = rows.copy()
    KERNELS.scatter(rows, pool, index)
    assert np.array_equal(rows, kept)
    written = base.copy()
    base[...] = before
    for i, row in zip(index.tolist(), rows, strict=True):
        pool[i // size, i % size] = row
    assert np.array_equal(base, written)
    return len(index)


@given(
    st.integers(1, 9), st.sampled_from([1, 2, 3, 4, 16]), st.integers(1, 40), st.integers(0, 20), st.integers(0, 9), st.randoms()
)
@settings(max_examples=200, deadline=None)
def test_paged_rows_from_any_start(slots, size, row_bytes, padding, offset, random):
    base, pool = pool_of(1, slots, size, row_bytes, padding, offset)
    table = random.sample(range(slots), slots)
    start = random.randrange(slots * size)
    stop = random.randrange(start + 1, slots * size + 1)
    index = np.array([table[p // size] * size + p % size for p in range(start, stop)])
    assert both_ways_are_right(pool, base, index)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 9), st.randoms())
@settings(max_examples=100, deadline=None)
def test_rows_in_any_order(slots, size, row_bytes, random):
    base, pool = pool_of(2, slots, size, row_bytes, 3)
    index = np.array(random.sample(range(slots * size), random.randrange(1, slots * size + 1)))
    assert both_ways_are_right(pool, base, index)


GEOMETRIES = [(32, 1024, 0), (32, 514, 0), (16, 1028, 12), (1, 257, 0), (64, 2048, 16)]


@pytest.mark.parametrize(("size", "row_bytes", "padding"), GEOMETRIES)
def test_blocks_of_the_sizes_in_use(size, row_bytes, padding):
    base, pool = pool_of(3, 24, size, row_bytes, padding)
    table = np.random.default_rng(4).permutation(24)
    index = (table[:, None] * size + np.arange(size)).ravel()
    assert both_ways_are_right(pool, base, index[size // 2 : len(index) - size // 3]) > 20


@pytest.mark.parametrize("bits", [0x7FF0000000000001, 0xFFF8DEADBEEF0000, 0x7F8000017F800001])
def test_nan_patterns_pass_the_wide_elements(bits):
    pool, packed = np.full((3, 4, 2), bits, np.uint64).view(np.uint8), np.zeros((4, 16), np.uint8)
    KERNELS.gather(pool, np.arange(4, 8), packed)
    assert packed.view(np.uint64).tolist() == [[bits, bits]] * 4
    empty = np.zeros_like(pool)
    KERNELS.scatter(packed, empty, np.arange(4, 8))
    assert empty.view(np.uint64)[1].tolist() == [[bits, bits]] * 4


@pytest.mark.parametrize("index", [[8, 9, 10, 11, 12, 13, 14, 15], [-4, -3, -2, -1], [13], [4, 13]])
def test_a_row_behind_the_pool_is_an_error_whole_block_or_not(index):
    """The runtime has looked before: this is the second lock on the door."""
    _, pool = pool_of(6, 3, 4, 16, 0)
    beyond = np.array(index)
    with pytest.raises(IndexError):
        KERNELS.gather(pool, beyond, np.zeros((len(index), 16), np.uint8))
    with pytest.raises(IndexError):
        KERNELS.scatter(np.zeros((len(index), 16), np.uint8), pool, beyond)


@pytest.mark.parametrize("beyond", [12, -4])
def test_nothing_is_moved_where_the_last_rows_are_behind_the_pool(beyond):
    base, pool = pool_of(6, 3, 4, 16, 0)
    index, before, packed = np.array([2, 3, 4, 5, 6, 7, beyond]), base.copy(), np.full((7, 16), 77, np.uint8)
    with pytest.raises(IndexError, match="of a pool of 3"):
        KERNELS.gather(pool, index, packed)
    with pytest.raises(IndexError, match="of a pool of 3"):
        KERNELS.scatter(packed, pool, index)
    assert np.array_equal(base, before)
    assert (packed == 77).all()


def test_no_rows_are_no_work():
    _, pool = pool_of(7, 3, 4, 16, 0)
    before = pool.copy()
    KERNELS.gather(pool, np.empty(0, np.int64), np.zeros((0, 16), np.uint8))
    KERNELS.scatter(np.zeros((0, 16), np.uint8), pool, np.empty(0, np.int64))
    assert np.array_equal(pool, before)


def test_torch_keeps_to_the_calling_thread(monkeypatch):
    """A call of 32,768 elements or more would start threads of its own; here one of as many rows as fit below it."""
    sizes = []
    real = torch.index_select
    monkeypatch.setattr(torch, "index_select", lambda *args, out: (sizes.append(out.numel()), real(*args, out=out)))
    _, pool = pool_of(8, 64, 32, 1024, padding=16)
    packed = np.zeros((64 * 32, 1024), np.uint8)
    KERNELS.gather(pool, np.arange(64 * 32), packed)
    assert np.array_equal(packed.reshape(pool.shape), pool)
    assert sum(sizes) == 64 * 32 * 1024 // 16
    assert max(sizes) < 32_768
    assert len(sizes) == 5


def test_an_index_that_nobody_can_write_to_is_cut_once_and_another_each_time():
    _, pool = pool_of(9, 4, 2, 3, 0)
    kernels, index, packed = HostKernels(), np.array([2, 3, 6, 7]), np.zeros((4, 3), np.uint8)
    for slots in ([1, 3], [0, 2]):
        index[:] = [slots[0] * 2, slots[0] * 2 + 1, slots[1] * 2, slots[1] * 2 + 1]
        kernels.gather(pool, index, packed)
        assert np.array_equal(packed.reshape(2, 2, 3), pool[slots])
    fixed = index.copy()
    fixed.flags.writeable = False
    other = fixed + 2
    other.flags.writeable = False
    for each, slots in [(fixed, [0, 2]), (fixed, [0, 2]), (other, [1, 3])]:
        kernels.gather(pool, each, packed)
        assert np.array_equal(packed.reshape(2, 2, 3), pool[slots])
    kernels.gather(pool.reshape(8, 1, 3), fixed, packed)
    assert np.array_equal(packed, pool.reshape(8, 3)[fixed])
