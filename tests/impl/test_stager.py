"""The stager against the plain definition, byte by byte."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage import PagedPool, SchemeError, Stager, Stats, ThreadDevice, UnknownSchemeError
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import CHUNK, LIBRARY, Pair
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, raw, same
from tests.support.tiers import often

SCHEMES = sorted(LIBRARY)
GEOMETRIES = [
    # block size, row, dtype, padding
    (32, (512,), torch.bfloat16, 0),
    (32, (257,), torch.bfloat16, 0),
    (16, (257,), torch.float32, 3),
    (3, (7,), torch.bfloat16, 5),
    (1, (1,), torch.uint8, 1),
    (1, (257,), torch.float32, 0),
    (4, (2, 3), torch.float16, 2),
    (3, (), torch.int64, 0),
    (5, (132,), torch.float8_e4m3fn, 12),
    (2, (3,), torch.bool, 0),
]


def stretches(table: list[int], size: int, start: int, stop: int, padding: int) -> int:
    """How many stretches of neighbouring blocks the rows touch; each block is one where bytes lie between the blocks."""
    blocks = [table[k] for k in range(start // size, (stop - 1) // size + 1)]
    if padding or stop - start <= size:
        return len(blocks)
    return sum(1 for i, block in enumerate(blocks) if i == 0 or block != blocks[i - 1] + 1)


def expected_stats(
    scheme: str, direction: str, size: int, start: int, stop: int, row_bytes: int, runs: int, chunk: int = CHUNK
) -> Stats:
    """Copies, waits, bytes and launches of a call, from the numbers of rows, blocks, runs and chunks that it touches."""
    rows = range(start, stop)
    blocks, chunks = len({row // size for row in rows}), len({k // chunk for k in range(len(rows))})
    moved = len(rows) * row_bytes
    last = 1 if direction == "write" else 0
    return {
        "per_row": Stats(len(rows), len(rows), moved, 0),
        "per_block": Stats(blocks, blocks, moved, 0),
        "per_run": Stats(runs, runs, moved, 0),
        "direct": Stats(blocks, 1, moved, 0),
        "ring": Stats(blocks, blocks + last, moved, 0),
        "gather_pinned": Stats(0, 1, moved, 1),
        "gather_host": Stats(0, 1, moved, 1),
        "gather_copy": Stats(chunks, 1, 2 * moved, chunks),
        "gather": Stats(chunks, chunks + last, 2 * moved, chunks),
    }[scheme]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("size", "row", "dtype", "padding"), often(GEOMETRIES, 40))
def test_both_directions_at_many_geometries(device, scheme, size, row, dtype, padding):
    blocks = random_blocks(1, 9, size, row, dtype, padding)
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme)
    table = [7, 0, 3, 4, 1]
    for start, stop in [(0, 5 * size), (1, 4 * size), (size - 1, 2 * size + 1), (2 * size, 2 * size + 1)]:
        before = blocks.memory()
        read = stager.read(pool, table, start, stop)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, table, start, stop))
        assert torch.equal(blocks.base, before)
        row_bytes = raw(blocks.tensor[0, 0]).numel()
        runs = stretches(table, size, start, stop, padding)
        assert read.stats == expected_stats(scheme, "read", size, start, stop, row_bytes, runs)

        rows = random_rows(100 * start + stop, stop - start, row, dtype)
        after = plain_write(blocks, table, start, rows)
        assert not torch.equal(after, before)
        write = stager.write(pool, table, start, rows)
        write.wait()
        assert write.result() is None
        assert torch.equal(blocks.base, after)
        assert write.stats == expected_stats(scheme, "write", size, start, stop, row_bytes, runs)


@st.composite
def transfers(draw):
    size = draw(st.sampled_from([1, 2, 3, 16]))
    num_blocks = draw(st.integers(1, 8))
    table = draw(st.permutations(range(num_blocks)))
    start = draw(st.integers(0, num_blocks * size - 1))
    stop = draw(st.integers(start + 1, num_blocks * size))
    width, padding = draw(st.integers(1, 9)), draw(st.integers(0, 3))
    dtype = draw(st.sampled_from([torch.uint8, torch.bfloat16, torch.float32]))
    return size, num_blocks, list(table), start, stop, width, padding, dtype


def in_chunks(name: str, chunk: int) -> str | Pair:
    """The schemes that pack chunks, with so few rows in each that a small transfer needs many."""
    if name == "gather_copy":
        return Pair(lambda rows: LIBRARY["gather_copy"].read(rows, chunk), lambda rows: LIBRARY["gather_copy"].write(rows, chunk))
    if name != "gather":
        return name
    return Pair(
        lambda rows, slots: LIBRARY["gather"].read(rows, slots, chunk),
        lambda rows, slots: LIBRARY["gather"].write(rows, slots, chunk),
    )


@given(transfers(), st.sampled_from(SCHEMES), st.integers(0, 2**16), st.integers(1, 4), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_any_transfer_and_its_way_back(device, transfer, name, seed, slots, chunk):
    scheme = in_chunks(name, chunk)
    options = {"slots": slots} if name in ("ring", "gather") else {}
    size, num_blocks, table, start, stop, width, padding, dtype = transfer
    blocks = random_blocks(seed, num_blocks, size, (width,), dtype, padding)
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme, **options)
    rows = random_rows(seed + 1, stop - start, (width,), dtype)
    after = plain_write(blocks, table, start, rows)
    write = stager.write(pool, table, start, rows)
    write.wait()
    assert torch.equal(blocks.base, after)
    read = stager.read(pool, table, start, stop)
    read.wait()
    assert same(read.result(), rows)
    row_bytes, runs = width * dtype.itemsize, stretches(table, size, start, stop, padding if num_blocks > 1 else 0)
    assert write.stats == expected_stats(name, "write", size, start, stop, row_bytes, runs, chunk)
    assert read.stats == expected_stats(name, "read", size, start, stop, row_bytes, runs, chunk)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_history_grown_row_by_row_and_read_whole(device, scheme):
    blocks, table = random_blocks(3, 6, 4, (5,), torch.bfloat16), [4, 1, 5]
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme)
    rows = random_rows(4, 12, (5,), torch.bfloat16)
    for length, count in [(0, 1), (1, 1), (2, 5), (7, 1), (8, 4)]:
        stager.write(pool, table, length, rows[length : length + count]).wait()
        history = stager.read(pool, table, 0, length + count)
        history.wait()
        assert same(history.result(), rows[: length + count])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_stager_serves_pools_of_other_row_sizes_in_turn(device, scheme):
    stager = Stager(device, scheme=scheme)
    for seed, (size, width, dtype) in enumerate(
        [(2, 3, torch.uint8), (32, 257, torch.float32), (4, 512, torch.bfloat16), (2, 3, torch.uint8)]
    ):
        blocks = random_blocks(seed, 3, size, (width,), dtype)
        read = stager.read(PagedPool(blocks.tensor), [2, 0], 1, 2 * size)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, [2, 0], 1, 2 * size))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nan_payloads_survive_in_both_directions(device, scheme):
    patterns = torch.tensor([0x7FC00001, 0x7F800001, -0x400000, -1, 0x7FABCDEF, -0x80000000], dtype=torch.int64).to(torch.int32)
    nans = patterns.view(torch.float32).view(2, 3)
    assert nans.isnan().sum() == 5
    pool, stager = PagedPool(torch.zeros(2, 2, 3)), Stager(device, scheme=scheme)
    stager.write(pool, [1], 0, nans).wait()
    assert pool.tensor[1].view(torch.int32).flatten().tolist() == patterns.tolist()
    read = stager.read(pool, [1], 0, 2)
    read.wait()
    assert read.result().view(torch.int32).flatten().tolist() == patterns.tolist()


TABLE = [5, 2, 7, -1, -1]
TABLES = {
    "list": TABLE,
    "tuple": tuple(TABLE),
    "list of numpy ints": [np.int64(block) for block in TABLE],
    "numpy int32": np.array(TABLE, dtype=np.int32),
    "numpy int64": np.array(TABLE),
    "numpy, strided": np.array([[block, 99] for block in TABLE])[:, 0],
    "torch int32": torch.tensor(TABLE, dtype=torch.int32),
    "torch int64": torch.tensor(TABLE),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_and_padding_behind_the_length(device, kind, scheme):
    blocks = random_blocks(5, 8, 4, (3,), torch.bfloat16)
    pool, stager, table = PagedPool(blocks.tensor), Stager(device, scheme=scheme), TABLES[kind]
    read = stager.read(pool, table, 2, 12)
    read.wait()
    assert same(read.result(), plain_read(blocks.tensor, TABLE, 2, 12))
    after = plain_write(blocks, TABLE, 2, random_rows(6, 10, (3,), torch.bfloat16))
    stager.write(pool, table, 2, random_rows(6, 10, (3,), torch.bfloat16)).wait()
    assert torch.equal(blocks.base, after)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_before_the_rows_are_not_looked_at(device, scheme):
    """A sliding window frees its first blocks."""
    blocks = random_blocks(7, 4, 4, (3,), torch.uint8)
    read = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), [-1, -1, 3], 8, 12)
    read.wait()
    assert same(read.result(), blocks.tensor[3])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_read_may_name_a_block_twice(device, scheme):
    blocks = random_blocks(8, 2, 2, (3,), torch.uint8)
    read = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), [1, 1], 0, 4)
    read.wait()
    assert same(read.result(), torch.cat([blocks.tensor[1], blocks.tensor[1]]))


def test_out_is_filled_and_returned(device):
    blocks = random_blocks(9, 3, 4, (3,), torch.float32)
    whole = random_rows(10, 8, (3,), torch.float32)
    edges = whole.clone()
    read = Stager(device, scheme="per_row").read(PagedPool(blocks.tensor), [2, 0], 1, 7, out=whole[1:7])
    read.wait()
    assert read.result().data_ptr() == whole[1:7].data_ptr()
    assert same(whole[1:7], plain_read(blocks.tensor, [2, 0], 1, 7))
    assert same(whole[[0, 7]], edges[[0, 7]])


class Untouchable(ThreadDevice):
    """Fails as soon as anything is asked of it."""

    def _refuse(self, *_args):
        raise AssertionError("an empty call must ask nothing of the device")

    view = allocate = copy = gather = scatter = host_copy = synchronize = _refuse
    event = record = wait_event = wait = query = _refuse


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_empty_call_asks_nothing_of_the_device(scheme):
    pool, stager = PagedPool(torch.zeros(2, 4, 3)), Stager(Untouchable(), scheme=scheme)
    read, write = stager.read(pool, [], 0, 0), stager.write(pool, [], 0, torch.empty(0, 3))
    read.wait()
    assert read.result().shape == (0, 3)
    assert read.stats == write.stats == Stats()
    assert stager.read(pool, [-1], 5, 5, out=torch.empty(0, 3)).query()
    with pytest.raises(AssertionError, match="nothing of the device"):
        stager.read(pool, [0], 0, 1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_autograd_neither_grows_nor_misses_a_write(device, scheme):
    stager = Stager(device, scheme=scheme)
    leaf = torch.zeros(2, 2, 3, requires_grad=True)
    with torch.inference_mode():
        frozen = torch.zeros(2, 2, 3)
    for tensor in (leaf, frozen):
        stager.write(PagedPool(tensor), [1], 0, torch.ones(2, 3, requires_grad=True)).wait()
        assert tensor[1].tolist() == [[1.0] * 3] * 2
        assert tensor.grad_fn is None
    assert leaf.is_leaf


@pytest.mark.parametrize("told", [True, False])
def test_autograd_notices_that_a_saved_tensor_was_overwritten(device, monkeypatch, told):
    if not told:
        monkeypatch.setattr("kvstage.calls.increment_version", lambda _: None)
    stager, weight, out = Stager(device, scheme="per_block"), torch.ones(2, 3, requires_grad=True), torch.zeros(2, 3)
    loss = (weight * out).sum()
    stager.read(PagedPool(torch.full((1, 2, 3), 9.0)), [0], 0, 2, out=out).wait()
    if told:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    else:
        loss.backward()
        assert weight.grad.tolist() == [[9.0] * 3] * 2  # silently wrong: `out` was 0 when it was multiplied


def test_unknown_scheme_names_the_known_ones(device):
    with pytest.raises(UnknownSchemeError, match=r"'per_blok'.*'per_row', 'per_block', 'per_run', 'direct', 'ring', 'gather_p"):
        Stager(device, scheme="per_blok")


NO_SLOTS = [("direct", 4, "no ring"), ("ring", 0, "slots is 0"), ("gather", -1, "slots is -1")]


@pytest.mark.parametrize(("scheme", "slots", "says"), NO_SLOTS)
def test_slots_that_make_no_sense(device, scheme, slots, says):
    with pytest.raises(SchemeError, match=says):
        Stager(device, scheme=scheme, slots=slots)


def test_a_ring_has_the_slots_that_were_asked_for():
    sizes = []

    class Watched(ThreadDevice):
        def allocate(self, memory, size):
            if memory is Memory.PINNED:
                sizes.append(size)
            return super().allocate(memory, size)

    with Watched() as device:
        for slots in (None, 1, 7):
            stager = Stager(device, scheme="ring", slots=slots)
            stager.read(PagedPool(torch.zeros(3, 4, 5, dtype=torch.uint8)), [0, 2], 0, 8)
    assert sizes == [4 * 20, 1 * 20, 7 * 20]
