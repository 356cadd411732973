"""What is refused, before anything is written; and what would happen if it were not."""

from collections import deque

import numpy as np
import pytest
import torch

import kvstage
from kvstage import (
    AliasError,
    BlockIdError,
    ClosedError,
    DeviceError,
    DuplicateBlockError,
    KVStageError,
    LayoutError,
    PagedPool,
    RangeError,
    Stager,
    TableTooShortError,
    ThreadDevice,
    errors,
)
from kvstage.pool import as_bytes
from kvstage.runtime.memory_budget import Buffers
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, random_blocks, random_rows, same


def rows(count: int) -> torch.Tensor:
    return random_rows(2, count, (3,), torch.bfloat16)


BAD_RANGES_AND_TABLES = [
    # table, start, stop, error, what the message holds
    ([0, 1], -1, 3, RangeError, "start is -1"),
    ([0, 1], 3, 2, RangeError, r"\[3, 2\)"),
    ([0, 1], 0.5, 2, RangeError, "0.5"),
    ([0, 1], 0, "2", RangeError, "'2'"),
    ([0, 1], 0, 9, TableTooShortError, r"\[0, 9\) need 3 blocks of 4 rows, and the block table has 2"),
    ([], 0, 1, TableTooShortError, "has 0"),
    ([0, 6], 0, 5, BlockIdError, "entry 1 is 6, and pool 'latent' has blocks 0 to 5"),
    ([0, 2**40], 0, 5, BlockIdError, str(2**40)),
    ([0, -1], 0, 5, BlockIdError, "entry 1 is -1"),
    (torch.tensor([0, -1], dtype=torch.int32), 4, 5, BlockIdError, "entry 1 is -1"),
    ([0, 1.0], 0, 5, BlockIdError, "entry 1 is 1.0"),
    ([0, None], 0, 5, BlockIdError, "None"),
    (np.array([0.0, 1.0]), 0, 5, LayoutError, "float64"),
    (torch.tensor([True, False]), 0, 5, LayoutError, "torch.bool"),
    (torch.tensor([[0, 1]]), 0, 5, LayoutError, r"\[1, 2\]"),
    (torch.tensor([0, 1], device="meta"), 0, 5, DeviceError, "meta"),
    ({0: 1}, 0, 5, LayoutError, "dict"),
    ("01", 0, 5, LayoutError, "str"),
    (deque([0, 1, 2]), 0, 5, LayoutError, r"is a deque, which has no slices.*pass list\(table\)"),
    ([torch.tensor(0), torch.tensor(1)], 0, 5, LayoutError, r"lists tensors.*torch.stack\(list\(table\)\).cpu\(\)"),
    ([3, 0, torch.tensor(1), 2], 0, 16, LayoutError, "lists tensors.*pass integers"),
    ((0, torch.tensor(1, device="meta")), 0, 5, LayoutError, "lists tensors"),
]


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
@pytest.mark.parametrize(("table", "start", "stop", "error", "says"), BAD_RANGES_AND_TABLES)
def test_a_read_with_a_bad_range_or_table_writes_nothing(device, scheme, table, start, stop, error, says):
    blocks, out = random_blocks(1, 6, 4, (3,), torch.bfloat16), rows(5)
    before, kept, copies = blocks.memory(), out.clone(), device.copies
    pool = PagedPool(blocks.tensor, name="latent")
    with pytest.raises(error, match=says):
        Stager(device, scheme=scheme).read(pool, table, start, stop, out=out)
    assert issubclass(error, KVStageError)
    assert torch.equal(blocks.base, before)
    assert same(out, kept)
    assert device.copies == copies


@pytest.mark.parametrize(
    ("table", "start", "stop", "error", "says"),
    [case for case in BAD_RANGES_AND_TABLES if case[3] not in (RangeError,)] + [([0, 1], -1, 3, RangeError, "start is -1")],
)
def test_a_write_with_a_bad_range_or_table_writes_nothing(device, table, start, stop, error, says):
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16)
    before, copies = blocks.memory(), device.copies
    with pytest.raises(error, match=says):
        Stager(device, scheme="per_block").write(PagedPool(blocks.tensor, name="latent"), table, start, rows(stop - start))
    assert torch.equal(blocks.base, before)
    assert device.copies == copies


def test_a_write_that_names_a_touched_block_twice(device):
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16)
    before, pool, stager = blocks.memory(), PagedPool(blocks.tensor), Stager(device, scheme="per_block")
    with pytest.raises(DuplicateBlockError, match="block 3 is both entry 1 and entry 3"):
        stager.write(pool, [0, 3, 1, 3], 0, rows(13))
    assert torch.equal(blocks.base, before)
    stager.write(pool, [0, 3, 1, 3], 0, rows(12)).wait()  # the second 3 is not touched
    assert same(plain_read(blocks.tensor, [0, 3, 1], 0, 12), rows(12))


BAD_ROWS = [
    (lambda: rows(5).float(), LayoutError, "torch.float32 and pool 'latent' is torch.bfloat16"),
    (lambda: rows(4), LayoutError, r"\[4, 3\]: it must be \[5, 3\]"),
    (lambda: rows(5)[:, :2].contiguous(), LayoutError, r"\[5, 2\]: it must be \[5, 3\]"),
    (lambda: rows(10)[::2], LayoutError, r"strides \[6, 1\].*contiguous"),
    (lambda: torch.empty(5, 3, dtype=torch.bfloat16, device="meta"), DeviceError, "meta"),
]


@pytest.mark.parametrize(("make", "error", "says"), BAD_ROWS)
def test_an_out_that_does_not_fit(device, make, error, says):
    blocks, out = random_blocks(1, 6, 4, (3,), torch.bfloat16), make()
    before, kept = blocks.memory(), out.clone()
    with pytest.raises(error, match=says):
        Stager(device, scheme="per_block").read(PagedPool(blocks.tensor, name="latent"), [0, 1], 0, 5, out=out)
    assert torch.equal(blocks.base, before)
    assert out.is_meta or same(out, kept)


@pytest.mark.parametrize(
    ("make", "error", "says"), [case for case in BAD_ROWS if "it must be [5, 3]" not in case[2].replace("\\", "")]
)
def test_rows_that_do_not_fit(device, make, error, says):
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16)
    before = blocks.memory()
    with pytest.raises(error, match=says):
        Stager(device, scheme="per_block").write(PagedPool(blocks.tensor, name="latent"), [0, 1], 0, make())
    assert torch.equal(blocks.base, before)


@pytest.mark.parametrize("shape", [(), (3,), (2, 4), (2, 3, 1)])
def test_rows_of_another_shape(device, shape):
    with pytest.raises(LayoutError, match="it must be"):
        Stager(device, scheme="per_block").write(PagedPool(torch.zeros(2, 4, 3)), [0, 1], 0, torch.zeros(shape))


def test_rows_inside_the_pool_are_refused_both_ways(device):
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16)
    before, pool, stager = blocks.memory(), PagedPool(blocks.tensor), Stager(device, scheme="per_block")
    inside = blocks.tensor.view(-1, 3)[2:7]
    with pytest.raises(AliasError, match="out lies in the memory of the pool"):
        stager.read(pool, [0, 1], 0, 5, out=inside)
    with pytest.raises(AliasError, match="rows lies in the memory of the pool"):
        stager.write(pool, [0, 1], 0, inside)
    assert torch.equal(blocks.base, before)


def test_a_neighbour_of_the_pool_in_one_storage_is_no_alias(device):
    memory = random_rows(3, 24 + 5, (3,), torch.bfloat16)
    pool, after = PagedPool(memory[:24].view(6, 4, 3)), memory[24:]
    read = Stager(device, scheme="per_block").read(pool, [2, 1], 0, 5, out=after)
    read.wait()
    assert same(memory[24:], plain_read(pool.tensor, [2, 1], 0, 5))


def unchecked(device, direction, pool, table, start, stop, host):
    """The call without its checks."""
    paged = PagedRows(table.__getitem__, pool.num_blocks, pool.block_size, start, stop)
    Runtime(device, Buffers(device, None)).submit(
        getattr(LIBRARY["per_row"], direction)(paged), pool.bytes, as_bytes(host, 1).unsqueeze(0)
    )


def test_twin_a_duplicate_would_lose_rows(device):
    pool = PagedPool(random_blocks(1, 6, 4, (3,), torch.bfloat16).tensor)
    unchecked(device, "write", pool, [3, 3], 0, 8, rows(8))
    assert not same(plain_read(pool.tensor, [3, 3], 0, 8), rows(8))


def test_twin_an_alias_would_overwrite_rows_still_to_read(device):
    pool = PagedPool(random_blocks(1, 6, 4, (3,), torch.bfloat16).tensor)
    expected = plain_read(pool.tensor, [0, 1], 0, 5)
    out = pool.tensor.view(-1, 3)[2:7]
    unchecked(device, "read", pool, [0, 1], 0, 5, out)
    assert not same(out, expected)


def test_twin_a_negative_block_would_be_the_last_one():
    pool = PagedPool(random_blocks(1, 6, 4, (3,), torch.bfloat16).tensor)
    assert torch.equal(pool.bytes[-1], pool.bytes[5])


def test_a_closed_device_refuses_every_call():
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16)
    before, pool = blocks.memory(), PagedPool(blocks.tensor)
    with ThreadDevice() as device:
        stager = Stager(device, scheme="per_block")
        stager.read(pool, [0], 0, 1).wait()
    for call in (lambda: stager.read(pool, [0], 0, 1), lambda: stager.write(pool, [0], 0, rows(1))):
        with pytest.raises(ClosedError, match="closed"):
            call()
    assert torch.equal(blocks.base, before)


def test_every_error_has_the_common_base_and_is_exported():
    named = {value for name, value in vars(kvstage).items() if name.endswith("Error")}
    written = {value for name, value in vars(errors).items() if name.endswith("Error") and value.__module__ == errors.__name__}
    assert written <= named
    assert len(named) >= 16
    assert all(issubclass(error, KVStageError) for error in named)
