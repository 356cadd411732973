"""AcceleratorDevice on a fake that is as late as it may be: what is not waited for, or not ordered, shows in the bytes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from kvstage import AcceleratorDevice, PagedPool, Stager
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import SyncEvent, SyncStream
from kvstage_model.schemes.registry import LIBRARY
from tests.support.broken import without
from tests.support.fake_accelerator import CALLER, FakeAccelerator, fake, late
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, raw, same

__all__ = ["fake", "late"]

SCHEMES = sorted(LIBRARY.keys() - {"gather_host"})
TABLE = [4, 5, 0, 7]


@pytest.fixture
def device(late: FakeAccelerator) -> Iterator[AcceleratorDevice]:
    with AcceleratorDevice() as device:
        yield device


@contextmanager
def put_off(late: FakeAccelerator) -> Iterator[None]:
    """What the caller's stream does inside is not done before somebody waits for it."""
    assert late.late is not None
    late.late.add(CALLER)
    yield
    late.late.remove(CALLER)


def pool_of(late: FakeAccelerator, seed: int, width: int = 3) -> PagedPool:
    return PagedPool(late.on_device(random_blocks(seed, 9, 4, (width,), torch.bfloat16).tensor))


def moved(late: FakeAccelerator, device: AcceleratorDevice, scheme, direction: str) -> bool:
    """Whether a call that the caller waits for has moved the rows of the definition."""
    blocks = random_blocks(1, 9, 4, (3,), torch.bfloat16)
    late.on_device(blocks.base)
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme)
    if direction == "read":
        out = late.pin(random_rows(2, 13, (3,), torch.bfloat16))
        stager.read(pool, TABLE, 2, 15, out=out).wait()
        return same(out, plain_read(blocks.tensor, TABLE, 2, 15))
    rows = late.pin(random_rows(3, 13, (3,), torch.bfloat16))
    after = plain_write(blocks, TABLE, 2, rows)
    stager.write(pool, TABLE, 2, rows).wait()
    return torch.equal(blocks.base, after)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_every_scheme_moves_the_right_bytes(late, device, scheme, direction):
    assert moved(late, device, scheme, direction)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_without_its_waits_it_moves_wrong_ones(late, device, scheme, direction):
    """The twin: the fake would not hide a wait that is missing."""
    broken = LIBRARY[scheme]
    for kind in (SyncStream, SyncEvent):
        broken = without(broken, Named(kind))
    assert not moved(late, device, broken, direction)


def test_many_calls_under_way_share_the_memory_of_their_stream(late, device):
    """Packed rows of several calls pass through one piece of device memory, which grows between two of them."""
    pools = [pool_of(late, seed, width) for seed, width in enumerate([3, 2, 5, 3, 7, 2])]
    tables = [TABLE, TABLE, TABLE, [1, 2, 3, 8], [1, 2, 3, 8], TABLE]
    with Stager(device, scheme="gather_pinned") as stager:
        with stager.batch() as batch:
            reads = [batch.read(pool, table, 1, 14) for pool, table in zip(pools, tables, strict=True)]
        assert not batch.query()
        batch.wait()
        for read, pool, table in zip(reads, pools, tables, strict=True):
            assert same(read.result(), plain_read(pool.tensor, table, 1, 14))
        rows = [late.pin(random_rows(seed, 13, pool.row_shape, torch.bfloat16)) for seed, pool in enumerate(pools)]
        with stager.batch() as batch:
            for pool, table, row in zip(pools, tables, rows, strict=True):
                batch.write(pool, table, 1, row)
        batch.wait()
        for pool, table, row in zip(pools, tables, rows, strict=True):
            assert same(plain_read(pool.tensor, table, 1, 14), row)


def read_behind_the_caller(late: FakeAccelerator, device: AcceleratorDevice, scheme: str) -> bool:
    """Whether a read finds what the caller's stream, which is late, writes to the pool before it."""
    pool, fresh = pool_of(late, 1), pool_of(late, 2)
    with put_off(late):
        pool.tensor.copy_(fresh.tensor)
        read = Stager(device, scheme=scheme).read(pool, TABLE, 2, 15)
        read.wait()
    return same(read.result(), plain_read(fresh.tensor, TABLE, 2, 15))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_call_comes_behind_what_the_caller_has_under_way(late, device, scheme):
    assert read_behind_the_caller(late, device, scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_without_that_order_it_finds_what_was_there_before(monkeypatch, late, device, scheme):
    monkeypatch.setattr(AcceleratorDevice, "order_after", lambda self, stream, after: None)
    assert not read_behind_the_caller(late, device, scheme)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_the_callers_stream_comes_behind_the_rows_where_it_waits_for_them(late, device, scheme, ordered):
    """And where it does not, it is before them: the twin."""
    pool, rows = pool_of(late, 1), late.pin(random_rows(3, 13, (3,), torch.bfloat16))
    seen = torch.zeros_like(pool.tensor)
    write = Stager(device, scheme=scheme).write(pool, TABLE, 2, rows)
    with put_off(late):
        if ordered:
            write.wait_stream()
        seen.copy_(pool.tensor)
    late.run(CALLER)  # the caller's stream goes on, and the host has waited for nothing
    assert same(plain_read(seen, TABLE, 2, 15), rows) == ordered
    write.wait()
    assert raw(seen).numel() == 9 * 4 * 3 * 2
