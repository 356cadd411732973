"""Copies between two pools: against the definition, row by row, and what is refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage import (
    AliasError,
    BlockIdError,
    DuplicateBlockError,
    HostDevice,
    LayoutError,
    OpenCLDevice,
    PagedPool,
    SimDevice,
    Stager,
    Stats,
    TableTooShortError,
    ThreadDevice,
)
from kvstage.pool import disjoint
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import IssueOrder
from tests.support.plain import Blocks, random_blocks, random_rows, same


def plain_copy(source: Blocks, source_table: list[int], target: Blocks, target_table: list[int]) -> torch.Tensor:
    """All memory of the target's pool after a copy, by the definition: row p of the sequence, for as many as the smaller holds."""
    pools = (source.tensor, source_table), (target.tensor, target_table)
    rows = min(len(table) * pool.shape[1] for pool, table in pools)
    after = Blocks(target.base.clone(), target.tensor)
    moved = after.base.view(target.tensor.dtype).as_strided(target.tensor.shape, target.tensor.stride())
    for p in range(rows):
        (size, table), (into, target_blocks) = ((pool.shape[1], table) for pool, table in pools)
        moved[target_blocks[p // into], p % into] = source.tensor[table[p // size], p % size]
    return after.base


@st.composite
def copies(draw):
    small, factor = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    number = draw(st.integers(1, 9))
    larger = -(-number // factor)
    tables = [draw(st.permutations(range(n + 3)))[:n] for n in (number, larger)]
    sizes, into_larger = (small, small * factor), draw(st.booleans())
    paddings = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    order = (0, 1) if into_larger else (1, 0)
    return [(sizes[k], list(tables[k]), paddings[k]) for k in order]


@given(copies(), st.sampled_from([torch.uint8, torch.bfloat16]), st.integers(0, 99))
@settings(max_examples=120, deadline=None)
def test_any_copy(device, ends, dtype, seed):
    (size, source_table, padding), (into, target_table, other_padding) = ends
    source = random_blocks(seed, 12, size, (3,), dtype, padding)
    target = random_blocks(seed + 1, 12, into, (3,), dtype, other_padding)
    before, after = source.memory(), plain_copy(source, source_table, target, target_table)
    stager = Stager(device, scheme="per_block")
    transfer = stager.copy(PagedPool(source.tensor), source_table, PagedPool(target.tensor), target_table)
    transfer.wait()
    assert transfer.result() is None
    assert same(target.base, after)
    assert same(source.base, before)
    number = max(len(source_table), len(target_table))
    assert transfer.stats == Stats(copies=number, waits=1, bytes=number * min(size, into) * 3 * dtype.itemsize)


def offload_and_load(device) -> tuple[torch.Tensor, torch.Tensor]:
    """Three blocks to one and a half of twice the size, and back to other places."""
    source, back = random_blocks(1, 6, 2, (3,), torch.uint8), random_blocks(2, 6, 2, (3,), torch.uint8)
    host = random_blocks(3, 4, 4, (3,), torch.uint8)
    stager = Stager(device, scheme="ring")
    with stager.batch() as batch:
        batch.copy(PagedPool(source.tensor), [5, 0, 2], PagedPool(host.tensor), [1, 3])
    batch.wait()
    stager.copy(PagedPool(host.tensor), [1, 3], PagedPool(back.tensor), [4, 1, 0]).wait()
    return source.tensor[[5, 0, 2]], back.tensor[[4, 1, 0]]


def test_there_and_back_under_every_delay():
    ran = 0
    for _schedule, (sent, arrived) in delays(lambda schedule: offload_and_load(SimDevice(schedule))):
        assert same(sent, arrived)
        ran += 1
    assert ran > 8


def test_planar_pages_are_copied_whole():
    """A page is all keys, then all scales: a row of it is two spans, so a page is one row of a pool with blocks of 1."""
    keys, scales = torch.arange(6 * 4 * 128).to(torch.uint8).view(6, -1), torch.arange(6 * 4 * 4).to(torch.uint8).view(6, -1)
    pages = torch.cat([keys, scales], dim=1)
    host = torch.zeros(3, 2, 4 * 132, dtype=torch.uint8)
    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct")
        stager.copy(PagedPool(pages.unsqueeze(1)), [4, 0, 5], PagedPool(host), [2, 0]).wait()
        read = stager.read(PagedPool(host), [2, 0], 0, 3)
        read.wait()
    assert same(read.result(), pages[[4, 0, 5]])


def pool(blocks: int = 6, size: int = 2, width: int = 3, dtype: torch.dtype = torch.float32) -> PagedPool:
    return PagedPool(torch.ones(blocks, size, width, dtype=dtype), name=f"blocks of {size}")


REFUSED = [
    # source, table, target, table, error, what the message holds
    (pool(), [0], pool(dtype=torch.bfloat16), [0], LayoutError, "float32.*bfloat16.*same rows"),
    (pool(), [0], pool(width=4), [0], LayoutError, r"\[3\].*\[4\]"),
    (pool(size=4), [0], pool(size=6), [0], LayoutError, "blocks of 4 rows, .* of 6: one must be a multiple"),
    (pool(), [0, 1, 2], pool(size=4), [0], TableTooShortError, "3 blocks of 2 rows fill 2 blocks of 4, and the other table has 1"),
    (pool(), [0, 1], pool(size=4), [0, 1], TableTooShortError, "fill 1 blocks of 4, and the other table has 2"),
    (pool(size=4), [0, 1], pool(), [0, 1], TableTooShortError, "2 blocks of 2 rows fill 1 blocks of 4"),
    (pool(), [0, 6], pool(size=4), [0], BlockIdError, "entry 1 is 6, and pool 'blocks of 2'"),
    (pool(), [0, -1], pool(size=4), [0], BlockIdError, "entry 1 is -1"),
    (pool(), [0, 1], pool(size=4), [-1], BlockIdError, "entry 0 is -1, and pool 'blocks of 4'"),
    (pool(), [0, 1, 2], pool(size=4), [3, 3], DuplicateBlockError, "block 3 is both"),
    (pool(size=4), [3, 0], pool(), [1, 2, 1], DuplicateBlockError, "block 1 is both"),
]


@pytest.mark.parametrize(("source", "blocks", "target", "others", "error", "says"), REFUSED)
def test_what_does_not_fit_is_refused_and_nothing_written(device, source, blocks, target, others, error, says):
    kept, copies = target.tensor.clone(), device.copies
    with pytest.raises(error, match=says):
        Stager(device, scheme="direct").copy(source, blocks, target, others)
    assert same(target.tensor, kept)
    assert device.copies == copies


def test_a_pool_onto_itself_is_refused(device):
    memory = torch.ones(8, 2, 3)
    with pytest.raises(AliasError, match="one stretch of memory"):
        Stager(device, scheme="direct").copy(PagedPool(memory), [0], PagedPool(memory[1:]), [0])


def test_a_block_may_be_sent_twice_and_no_block_is_no_work(device):
    source, target = random_blocks(1, 6, 2, (3,), torch.uint8), random_blocks(2, 6, 2, (3,), torch.uint8)
    after = plain_copy(source, [4, 4], target, [0, 1])
    stager = Stager(device, scheme="direct")
    stager.copy(PagedPool(source.tensor), [4, 4], PagedPool(target.tensor), [0, 1]).wait()
    assert same(target.base, after)
    nothing = stager.copy(PagedPool(source.tensor), [], PagedPool(target.tensor), [])
    assert nothing.query()
    assert nothing.stats == Stats()


@pytest.mark.parametrize("make", [HostDevice, ThreadDevice, OpenCLDevice, lambda: SimDevice(IssueOrder())])
@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 0), (2, 0)])
def test_layers_of_one_tensor_are_pools_of_their_own(make, one, other):
    layers = random_rows(1, 6 * 3 * 2, (5,), torch.uint8).view(6, 3, 2, 5)
    expected = layers.clone()
    expected[[4, 1], other] = layers[[0, 4], one]
    with make() as device, Stager(device) as stager:
        stager.copy(PagedPool(layers[:, one]), [0, 4], PagedPool(layers[:, other]), [4, 1]).wait()
    assert same(layers, expected)


@given(*[st.integers(1, 3)] * 4, st.integers(0, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 12))
def test_disjoint_is_what_the_sets_of_addresses_say_or_less(slots, others, size, other_size, gap, row, other_row, at):
    """And no less where the blocks are as far apart in both."""
    distance = max(size * row, other_size * other_row) + gap
    memory = torch.zeros(60 + 3 * distance, dtype=torch.uint8)
    first = PagedPool(memory.as_strided((slots, size, row), (distance, row, 1)))
    second = PagedPool(memory.as_strided((others, other_size, other_row), (distance, other_row, 1), at))
    numbers = torch.arange(len(memory))
    bytes_of = [
        set(numbers.as_strided(pool.tensor.shape, pool.tensor.stride(), pool.tensor.storage_offset()).flatten().tolist())
        for pool in (first, second)
    ]
    if disjoint(first, second):
        assert not bytes_of[0] & bytes_of[1]
    if min(slots, others) == 3 and at + other_size * other_row <= distance:
        assert disjoint(first, second) == (not bytes_of[0] & bytes_of[1])
