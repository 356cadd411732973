"""Pools: what layouts are taken, and which bytes a row is."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch

from kvstage import AliasError, HostDevice, LayoutError, PagedPool, Stager
from kvstage.pool import as_bytes, same_memory, span
from tests.support.plain import random_blocks, raw


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.complex64, torch.float8_e4m3fn])
def test_the_bytes_of_every_row(dtype, padding):
    blocks = random_blocks(1, 3, 4, (2, 5), dtype, padding)
    pool = PagedPool(blocks.tensor, name="latent")
    assert (pool.num_blocks, pool.block_size, pool.row_shape, pool.dtype) == (3, 4, (2, 5), dtype)
    assert pool.row_bytes == 10 * dtype.itemsize
    for slot in range(3):
        for row in range(4):
            assert torch.equal(pool.rows(slot, row, 1).flatten(), raw(blocks.tensor[slot, row]))
        assert torch.equal(pool.rows(slot, 1, 3).flatten(), raw(blocks.tensor[slot, 1:]))
    assert pool.bytes.data_ptr() == blocks.tensor.data_ptr()


def test_a_pool_that_is_a_slice_of_something_larger():
    packed = torch.arange(2 * 3 * 4 * 5, dtype=torch.int32).view(2, 3, 4, 5)  # blocks outermost, layers inside
    pool = PagedPool(packed[:, 1])
    assert pool.rows(1, 2, 1).view(torch.int32).tolist() == [packed[1, 1, 2].tolist()]


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (torch.zeros(4), r"\[4\].*num_blocks, block_size"),
        (torch.zeros(0, 4, 3), r"\[0, 4, 3\]"),
        (torch.zeros(2, 0, 3), r"\[2, 0, 3\]"),
        (torch.zeros(2, 4, 0), r"\[2, 4, 0\]"),
        (torch.zeros(2, 4, 6)[:, :, ::2], r"strides \[24, 6, 2\].*\(strides \[3, 1\] behind the first\)"),
        (torch.zeros(2, 4, 6)[:, :, :3], r"strides \[24, 6, 1\]"),
        (torch.zeros(2, 3, 4).transpose(1, 2), r"strides \[12, 1, 4\]"),
        (torch.zeros(1, 4, 3).expand(2, 4, 3), "every 0: they overlap"),
        (torch.zeros(60).as_strided((4, 4, 3), (6, 3, 1)), "block of 12 elements every 6"),
        (torch.zeros(2, 4, 3, dtype=torch.complex64).conj(), "conjugate"),
        (torch.zeros(2, 4, 3).to_sparse(), "sparse"),
    ],
)
def test_layouts_that_are_refused(tensor, says):
    with pytest.raises(LayoutError, match=says) as caught:
        PagedPool(tensor, name="latent")
    assert "pool 'latent'" in str(caught.value)


def test_twin_overlapping_blocks_would_share_rows():
    view = as_bytes(torch.zeros(18).as_strided((2, 4, 3), (6, 3, 1)), 2)
    view[0].fill_(7)
    assert (view[1, :2] == 7).all()


def test_sizes_of_one_may_have_any_stride():
    tensor = torch.arange(24, dtype=torch.int32).as_strided((3, 1, 4), (8, 999, 1))
    assert PagedPool(tensor).rows(2, 0, 1).view(torch.int32).tolist() == [[16, 17, 18, 19]]


def test_same_memory_knows_ranges():
    memory = torch.zeros(20, dtype=torch.uint8)

    def overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
        assert same_memory(span(second), span(first)) == same_memory(span(first), span(second))
        return same_memory(span(first), span(second))

    assert overlap(memory[:10], memory[9:])
    assert overlap(memory, memory[4:5])
    assert not overlap(memory[:10], memory[10:])
    assert overlap(memory[::4], memory[2:3])  # between its elements: told as an overlap, to be safe
    assert not overlap(memory[3:3], memory)
    assert span(memory.view(torch.int32)[::2]) == (memory.data_ptr(), memory.data_ptr() + 20)


def test_words():
    assert str(PagedPool(torch.zeros(2, 4, 3), name="latent")) == "pool 'latent'"
    assert str(PagedPool(torch.zeros(2, 4, 3))) == "the pool"
    assert repr(PagedPool(torch.zeros(2, 4, 3))) == "PagedPool(2 blocks of 4 rows of [3] torch.float32, name='')"


def write(pool: PagedPool, rows: torch.Tensor | None = None) -> None:
    """Ones, or other rows, to block 1."""
    rows = torch.ones(2, 4) if rows is None else rows
    Stager(HostDevice(), scheme="direct").write(pool, [1], 0, rows).wait()


def moved_by_a_module(tensor: torch.Tensor) -> None:
    tensor.data = tensor.data.to(torch.float64)


def moved(tensor: torch.Tensor) -> None:
    tensor.data = tensor.data.clone()


def freed(tensor: torch.Tensor) -> None:
    tensor.untyped_storage().resize_(0)


def shrunk(tensor: torch.Tensor) -> None:
    tensor.untyped_storage().resize_(16)


def reshaped(tensor: torch.Tensor) -> None:
    tensor.resize_(2, 4, 4)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (moved_by_a_module, r"torch.float64 .* now, and was .* torch.float32: make a new PagedPool"),
        (moved, r"other memory now, as after module.to\(\)"),
        (freed, "was given back|other memory"),
        (shrunk, "was given back"),
        (reshaped, r"\[2, 4, 4\].* now, and was \[8, 2, 4\]"),
    ],
)
def test_a_tensor_that_was_changed_in_place_is_no_longer_the_pools(change: Callable[[torch.Tensor], None], says):
    tensor = torch.zeros(8, 2, 4)
    pool = PagedPool(tensor, name="latent")
    change(tensor)
    with pytest.raises(LayoutError, match=says):
        write(pool)
    with pytest.raises(LayoutError, match="latent"):
        Stager(HostDevice(), scheme="direct").copy(pool, [1], PagedPool(torch.zeros(8, 2, 4)), [2])


def test_twin_without_the_look_a_write_goes_to_memory_that_nobody_has(monkeypatch):
    monkeypatch.setattr(PagedPool, "check_tensor", lambda pool: None)
    tensor = torch.zeros(8, 2, 4)
    pool = PagedPool(tensor)
    moved(tensor)
    write(pool)
    assert not tensor.any()


@pytest.mark.parametrize("now", [True, False])
def test_shared_memory_is_looked_for_where_it_is_now(monkeypatch, now):
    tensor = torch.arange(8.0).view(8, 1, 1).expand(8, 2, 4).contiguous()
    pool = PagedPool(tensor)
    if not now:  # the twin: where it was
        monkeypatch.setattr(PagedPool, "span", (1, 2))
    tensor.share_memory_()
    if now:
        with pytest.raises(AliasError):
            write(pool, tensor[1])
        write(pool)
        assert tensor[1].eq(1).all()
    else:
        write(pool, tensor[1])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda pool: pickle.loads(pickle.dumps(pool))])
def test_a_copy_is_a_pool_of_its_own_tensor(copied):
    pool = PagedPool(torch.zeros(8, 3, 2, 4)[:, 1], name="latent")
    other = copied(pool)
    assert (other.name, other.num_blocks, other.block_size, other.row_shape) == ("latent", 8, 2, (4,))
    write(other)
    assert other.tensor[1].eq(1).all()
    assert pool.tensor.any() == (other.tensor.data_ptr() == pool.tensor.data_ptr())
    with pytest.raises(AliasError):
        write(other, other.tensor[2])


def test_twin_a_copy_of_the_attributes_would_keep_the_old_address(monkeypatch):
    monkeypatch.delattr(PagedPool, "__reduce__")
    pool = PagedPool(torch.zeros(8, 2, 4))
    other = pickle.loads(pickle.dumps(pool))
    with pytest.raises(LayoutError, match="other memory"):
        write(other)
