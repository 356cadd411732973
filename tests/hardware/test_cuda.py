"""AcceleratorDevice on a real accelerator, CUDA or ROCm. `python -m bench device_check` runs these where there is one."""

from collections.abc import Iterator

import pytest
import torch

from kvstage import AcceleratorDevice, NotFinishedError, PagedPool, Stager
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, random_blocks, random_rows, same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA or ROCm device here")

SCHEMES = sorted(LIBRARY.keys() - {"gather_host"})
AT_ONCE = ["direct", "gather_pinned", "gather_copy"]
TABLE = [4, 5, 0, 7]
LONG = 200_000_000
"""Cycles that a kernel does nothing for: about a tenth of a second."""
GEOMETRIES = [
    # block size, row, dtype, padding
    (32, (512,), torch.bfloat16, 0),
    (32, (257,), torch.bfloat16, 0),
    (16, (257,), torch.float32, 3),
    (3, (7,), torch.bfloat16, 5),
    (1, (1,), torch.uint8, 1),
    (5, (132,), torch.float8_e4m3fn, 12),
]


@pytest.fixture
def device() -> Iterator[AcceleratorDevice]:
    with AcceleratorDevice() as device:
        yield device


def pool_of(device: AcceleratorDevice, seed: int, size: int = 32, width: int = 512) -> PagedPool:
    return PagedPool(random_blocks(seed, 9, size, (width,), torch.bfloat16).tensor.to(device.device))


def pinned_rows() -> torch.Tensor:
    """Where rows 5 to 99 of those pools go."""
    return torch.zeros(95, 512, dtype=torch.bfloat16).pin_memory()


def busy() -> None:
    """Keeps the current stream from going on for a while; the host goes on."""
    torch.cuda._sleep(LONG)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("size", "row", "dtype", "padding"), GEOMETRIES)
def test_rows_arrive_as_they_are(device, scheme, size, row, dtype, padding):
    base = random_blocks(1, 9, size, row, dtype, padding).base.to(device.device)
    block = size * torch.Size(row).numel()
    tensor = base.view(dtype)[:, :block].unflatten(1, (size, *row))
    pool, stager = PagedPool(tensor), Stager(device, scheme=scheme)
    for start, stop in [(0, 4 * size), (size // 2, 3 * size + 1), (size, size + 1)]:
        before = base.cpu()
        read = stager.read(pool, TABLE, start, stop)
        read.wait()
        assert same(read.result(), plain_read(tensor.cpu(), TABLE, start, stop))
        assert torch.equal(base.cpu(), before)
        rows = random_rows(start + stop, stop - start, row, dtype).pin_memory()
        expected = before.clone()
        wide = expected.view(dtype)[:, :block].unflatten(1, (size, *row))
        for i in range(stop - start):
            wide[TABLE[(start + i) // size], (start + i) % size] = rows[i]
        stager.write(pool, TABLE, start, rows).wait()
        assert torch.equal(base.cpu(), expected)


def rows_behind_a_kernel(device: AcceleratorDevice, scheme: str) -> bool:
    """Whether a read that was called while the caller's kernel is still to write the pool finds what it writes."""
    pool, fresh = pool_of(device, 1), pool_of(device, 2)
    stager = Stager(device, scheme=scheme)
    out = pinned_rows()
    stager.read(pool, TABLE, 5, 100, out=out).wait()  # nothing of torch's own start is in the way of what follows
    busy()
    pool.tensor.copy_(fresh.tensor)
    read = stager.read(pool, TABLE, 5, 100, out=out)
    read.wait()
    return same(read.result(), plain_read(fresh.tensor.cpu(), TABLE, 5, 100))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("default", [True, False])
def test_a_read_comes_behind_the_callers_kernels(device, scheme, default):
    module = torch.get_device_module(device.device)
    with module.stream(module.current_stream() if default else module.Stream()):
        assert rows_behind_a_kernel(device, scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_without_that_order_the_rows_are_wrong(monkeypatch, device, scheme):
    """The twin: the hazard is real on this machine."""
    monkeypatch.setattr(AcceleratorDevice, "order_after", lambda self, stream, after: None)
    assert not rows_behind_a_kernel(device, scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_kernels_come_behind_a_write_that_their_stream_waits_for(device, scheme):
    pool, rows = pool_of(device, 1), random_rows(3, 95, (512,), torch.bfloat16).pin_memory()
    stager = Stager(device, scheme=scheme)
    write = stager.write(pool, TABLE, 5, rows)
    write.wait_stream()
    seen = pool.tensor.clone()  # on the current stream, with no wait of the host
    write.wait()
    assert same(plain_read(seen.cpu(), TABLE, 5, 100), rows.cpu())


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_the_call_returns_while_its_rows_are_under_way(device, scheme):
    pool, stager, out = pool_of(device, 1), Stager(device, scheme=scheme), pinned_rows()
    stager.read(pool, TABLE, 5, 100, out=out).wait()
    out.zero_()
    busy()
    read = stager.read(pool, TABLE, 5, 100, out=out)  # to allocate pinned memory may take as long as the device is busy
    assert not read.query()
    with pytest.raises(NotFinishedError):
        read.result()
    read.wait()
    assert read.query()
    assert same(read.result(), plain_read(pool.tensor.cpu(), TABLE, 5, 100))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_wait_is_hidden_in_torch(device, scheme):
    """Torch raises where one of its own operations would wait for the device."""
    pool, rows = pool_of(device, 1), random_rows(3, 95, (512,), torch.bfloat16).pin_memory()
    stager = Stager(device, scheme=scheme)
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for table in (TABLE, TABLE, [1, 2, 3, 8]):
            read = stager.read(pool, table, 5, 100)
            read.wait()
            stager.write(pool, table, 5, rows).wait()
        with pytest.raises(RuntimeError):
            pool.tensor.sum().item()  # the mode sees what waits
    finally:
        torch.cuda.set_sync_debug_mode(before)
    assert same(plain_read(pool.tensor.cpu(), TABLE, 5, 100), rows.cpu())


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_rows_arrive_for_a_caller_who_has_dropped_everything_else(device, scheme):
    """The allocator may give the pool's memory to the next tensor as soon as nobody holds it."""
    out = pinned_rows()
    pool, stager = pool_of(device, 1), Stager(device, scheme=scheme)
    stager.read(pool, TABLE, 5, 100, out=out).wait()
    out.zero_()
    expected = plain_read(pool.tensor.cpu(), TABLE, 5, 100)
    busy()
    stager.read(pool, TABLE, 5, 100, out=out)
    del pool
    others = [torch.full((9, 32, 512), 7.0, dtype=torch.bfloat16, device=device.device) for _ in range(8)]
    stager.close()
    assert same(out, expected)
    assert len(others) == 8


def test_many_calls_with_one_wait(device):
    pools = [pool_of(device, seed, width=width) for seed in range(11) for width in (512, 257)]
    with Stager(device, scheme="gather_pinned") as stager:
        with stager.batch() as batch:
            reads = [batch.read(pool, TABLE, 3, 120) for pool in pools]
        batch.wait()
        assert batch.stats.waits == 1
        assert batch.stats.launches == len(pools)
        for pool, read in zip(pools, reads, strict=True):
            assert same(read.result(), plain_read(pool.tensor.cpu(), TABLE, 3, 120))


def test_pools_are_copied_to_the_host_and_back_and_on_the_device(device):
    """Blocks of 32 rows on the device, of 64 at the host."""
    pool, other, host = (
        pool_of(device, 1),
        pool_of(device, 2),
        PagedPool(torch.zeros(4, 64, 512, dtype=torch.bfloat16).pin_memory()),
    )
    before = pool.tensor.cpu()
    with Stager(device, scheme="direct") as stager:
        stager.copy(pool, TABLE, host, [3, 1]).wait()
        rows = plain_read(before, TABLE, 0, 128)
        assert same(plain_read(host.tensor, [3, 1], 0, 128), rows)
        for source, table in [(host, [3, 1]), (pool, TABLE)]:
            copy = stager.copy(source, table, other, [8, 2, 6, 0])
            copy.wait_stream()
            seen = other.tensor.clone()
            copy.wait()
            assert same(plain_read(seen.cpu(), [8, 2, 6, 0], 0, 128), rows)
            other.tensor.zero_()


def test_rows_are_converted_at_the_host(device):
    pool = pool_of(device, 1)
    for scheme in ("gather_pinned", "gather"):
        read = Stager(device, scheme=scheme).read(pool, TABLE, 5, 100, dtype=torch.float32)
        read.wait()
        expected = plain_read(pool.tensor.cpu(), TABLE, 5, 100)
        numbers = ~expected.isnan()
        assert same(read.result()[numbers], expected.float()[numbers])
        assert read.result().isnan().equal(expected.isnan())


def test_auto_measures_the_device_and_moves_the_right_rows(device):
    pool, ordinary, pinned = pool_of(device, 1), torch.zeros(95, 512, dtype=torch.bfloat16), pinned_rows()
    with Stager(device) as stager:
        assert stager.costs is not None
        assert stager.costs.kernels == {Memory.DEVICE, Memory.PINNED}
        for out in (None, ordinary, pinned):
            read = stager.read(pool, TABLE, 5, 100, out=out)
            read.wait()
            assert same(read.result(), plain_read(pool.tensor.cpu(), TABLE, 5, 100))
            assert read.choice is not None
            assert out is not ordinary or read.choice.scheme in ("gather", "ring", "per_run")
