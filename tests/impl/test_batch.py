"""Many calls and one wait."""

from contextlib import suppress

import pytest
import torch

from kvstage import ClosedError, DeviceError, NotFinishedError, PagedPool, Stager, Stats, ThreadDevice, Transfer
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

TABLE = [3, 0, 4]
LAYERS = 6


def everything(_stream: str, _index: int) -> bool:
    return True


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
def test_all_layers_and_caches_in_both_directions(scheme):
    widths = [3, 5] * LAYERS
    sources = [random_blocks(width, 5, 4, (width,), torch.bfloat16) for width in widths]
    targets = [random_blocks(width + 9, 5, 4, (width,), torch.bfloat16) for width in widths]
    rows = [random_rows(width, 9, (width,), torch.bfloat16) for width in widths]
    after = [plain_write(blocks, TABLE, 2, row) for blocks, row in zip(targets, rows, strict=True)]
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme=scheme)
        with stager.batch() as batch:
            reads = [batch.read(PagedPool(blocks.tensor), TABLE, 1, 12) for blocks in sources]
            writes = [batch.write(PagedPool(blocks.tensor), TABLE, 2, row) for blocks, row in zip(targets, rows, strict=True)]
        inside = device.waits
        batch.wait()
        assert device.waits - inside == (1 if scheme in ("direct", "gather_pinned", "gather_host", "gather_copy") else 0)
        assert (batch.stats.copies, batch.stats.waits, batch.stats.launches) == (device.copies, device.waits, device.launches)
    for read, blocks in zip(reads, sources, strict=True):
        assert same(read.result(), plain_read(blocks.tensor, TABLE, 1, 12))
    for write, blocks, expected in zip(writes, targets, after, strict=True):
        assert write.result() is None
        assert torch.equal(blocks.base, expected)


def test_one_event_and_one_wait_for_a_direct_batch():
    pools = [PagedPool(torch.ones(5, 4, 3)) for _ in range(LAYERS)]
    with ThreadDevice() as device:
        with Stager(device, scheme="direct").batch() as batch:
            for pool in pools:
                batch.read(pool, TABLE, 0, 12)
        batch.wait()
        batch.wait()
        assert batch.query()
        assert batch.stats == Stats(copies=3 * LAYERS, waits=1, bytes=LAYERS * 144)
        assert (device.copies, device.waits) == (3 * LAYERS, 1)


@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_nothing_of_a_batch_is_done_before_its_end_and_its_wait(scheme):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme=scheme)
        with stager.batch() as batch:
            read = batch.read(PagedPool(blocks.tensor), TABLE, 2, 11)
            assert not read.query()
            for waits in (batch.wait, batch.wait_stream):
                with pytest.raises(NotFinishedError, match="still open"):
                    waits()
        assert not read.query()
        assert not batch.query()
        with pytest.raises(TimeoutError):
            batch.wait(timeout=0)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, TABLE, 2, 11))
        with pytest.raises(ClosedError, match="batch has ended"):
            batch.read(PagedPool(blocks.tensor), TABLE, 2, 11)
        with pytest.raises(ClosedError, match="batch has ended"):
            batch.write(PagedPool(blocks.tensor), TABLE, 2, read.result())


def test_a_batch_that_breaks_off_is_waited_for_by_close():
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), random_rows(2, 9, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, 2, rows)
    with ThreadDevice() as device, device.hold(everything):
        stager = Stager(device, scheme="direct")
        with suppress(ZeroDivisionError), stager.batch() as batch:
            batch.write(PagedPool(blocks.tensor), TABLE, 2, rows)
            raise ZeroDivisionError
        assert not same(blocks.base, after)
        stager.close()
        assert same(blocks.base, after)


def test_an_empty_batch_has_nothing_to_wait_for():
    with ThreadDevice() as device:
        with Stager(device, scheme="direct").batch() as batch:
            batch.read(PagedPool(torch.ones(5, 4, 3)), [], 0, 0)
        batch.wait()
        assert batch.query()
        assert batch.stats == Stats()
        assert device.waits == 0


@pytest.mark.parametrize("scheme", ["direct", "per_block"])
@pytest.mark.parametrize("asks_all", [True, False])
def test_a_stream_can_not_wait_for_rows_that_the_host_converts(monkeypatch, scheme, asks_all):
    """The converting read is not the last of its stream, or on none at all."""
    if not asks_all:
        monkeypatch.setattr(Transfer, "check_stream", lambda self: None)
    pool = PagedPool(torch.ones(5, 4, 3, dtype=torch.bfloat16))
    wide = torch.full((8, 3), -7.0)
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        with stager.batch() as batch:
            batch.read(pool, TABLE, 0, 8, out=wide, dtype=torch.float32)
            batch.read(pool, TABLE, 0, 8)
        if asks_all:
            with pytest.raises(DeviceError, match="converts"):
                batch.wait_stream("mine")
        else:
            batch.wait_stream("mine")
            device.synchronize("mine")
            assert wide.eq(-7).all()
        batch.wait()
        assert wide.eq(1).all()
        batch.wait_stream("mine")
