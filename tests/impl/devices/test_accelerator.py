"""AcceleratorDevice against a fake of torch's streams that notes each call: what is ordered behind what, and what is kept."""

import os
from collections.abc import Iterator

import pytest
import torch

from kvstage import AcceleratorDevice, ClosedError, DeviceError, ForkedError, PagedPool, Stager
from kvstage.devices import accelerator_kernels
from kvstage.devices.row_cache import Remembered
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.devices import refusals
from tests.support.fake_accelerator import CALLER, FakeAccelerator, Noted, fake, within
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

__all__ = ["fake"]

SCHEMES = sorted(LIBRARY.keys() - {"gather_host"})
TABLE = [4, 5, 0, 7]
GEOMETRIES = [
    # block size, row, dtype, padding
    (4, (512,), torch.bfloat16, 0),
    (4, (257,), torch.bfloat16, 3),
    (3, (7,), torch.uint8, 5),
    (1, (2,), torch.float32, 1),
]


@pytest.fixture
def device(fake: FakeAccelerator) -> Iterator[AcceleratorDevice]:
    with AcceleratorDevice() as device:
        yield device


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("size", "row", "dtype", "padding"), GEOMETRIES)
def test_rows_arrive_as_they_are(fake, device, scheme, size, row, dtype, padding):
    blocks = random_blocks(1, 9, size, row, dtype, padding)
    fake.on_device(blocks.base)
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme)
    for start, stop in [(0, 4 * size), (size // 2, 3 * size + 1), (size, size + 1)]:
        before = blocks.memory()
        read = stager.read(pool, TABLE, start, stop)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, TABLE, start, stop))
        assert torch.equal(blocks.base, before)
        rows = fake.pin(random_rows(start + stop, stop - start, row, dtype))
        after = plain_write(blocks, TABLE, start, rows)
        stager.write(pool, TABLE, start, rows).wait()
        assert torch.equal(blocks.base, after)


def begun_early(log: list[Noted]) -> list[Noted]:
    """Work of a side stream that is not behind the caller's."""
    behind, early = set(), []
    for noted in log:
        if noted.what == f"wait for {CALLER}":
            behind.add(noted.stream)
        elif noted.what in ("copy", "gather", "scatter") and noted.stream not in behind:
            early.append(noted)
    return early


def log_of_a_read(fake: FakeAccelerator, scheme: str) -> list[Noted]:
    """What the second read of a stager does."""
    pool = PagedPool(fake.on_device(torch.arange(72.0).view(6, 4, 3)))
    stager = Stager(AcceleratorDevice(), scheme=scheme)
    stager.read(pool, [5, 2], 1, 7).wait()
    fake.log.clear()
    stager.read(pool, [5, 2], 1, 7).wait()
    return list(fake.log)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_call_begins_behind_the_callers_work_and_waits_for_no_more_than_its_own(fake, scheme):
    log = log_of_a_read(fake, scheme)
    assert sum(noted.what in ("copy", "gather") for noted in log) >= 1
    assert begun_early(log) == []
    assert not [noted for noted in log if noted.stream == "device"]
    assert not [noted for noted in log if noted.stream == CALLER and noted.what != "record"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_device_that_forgets_the_caller_is_seen(monkeypatch, fake, scheme):
    """The twin of the test above."""
    monkeypatch.setattr(AcceleratorDevice, "order_after", lambda self, stream, after: None)
    assert begun_early(log_of_a_read(fake, scheme)) != []


def test_what_one_call_does_in_order(fake):
    (side,) = {noted.stream for noted in log_of_a_read(fake, "gather_pinned")} - {CALLER, "host"}
    assert fake.log == [
        Noted(CALLER, "record"),
        Noted(side, f"wait for {CALLER}"),
        Noted(side, "gather"),  # the row numbers are there already, from the call before
        Noted(side, "copy"),
        Noted(side, "record"),
        Noted("host", f"wait for {side}"),
    ]


def test_row_numbers_are_uploaded_once_for_all_caches_and_kept_until_then(fake, device):
    pools = [PagedPool(fake.on_device(torch.rand(6, 4, width))) for width in (2, 3, 5)]
    stager, fake.finished = Stager(device, scheme="gather_pinned"), False
    reads = [stager.read(pool, [5, 1, 3], 1, 11) for pool in pools]
    assert [noted.what for noted in fake.log].count("copy") == 1 + len(pools)
    uploads = [ref for ref in fake.pinned if ref() is not None and ref().dtype is torch.int64]
    assert len(uploads) == 1, "kept while nobody knows whether the upload has ended"
    reads.append(stager.read(pools[0], [5, 1, 2], 1, 11))
    assert uploads[0]() is not None
    fake.finished = True
    reads.append(stager.read(pools[0], [5, 1, 4], 1, 11))
    assert uploads[0]() is None
    for read, pool, table in zip(reads, [*pools, pools[0], pools[0]], [[5, 1, 3]] * 3 + [[5, 1, 2], [5, 1, 4]], strict=True):
        read.wait()
        assert within(read.result(), fake.pinned)
        assert read.stats.launches == 1
        if read is reads[-1]:
            assert same(read.result(), plain_read(pool.tensor, table, 1, 11))


class LastAlone(Remembered):
    """Keeps one result."""

    def of(self, owner, numbers, rows, work):
        if (id(owner), *numbers) not in self._kept:
            self._kept.clear()
        return super().of(owner, numbers, rows, work)


@pytest.mark.parametrize("scheme", ["gather", "gather_copy"])
@pytest.mark.parametrize("all_pieces", [True, False])
def test_the_row_numbers_of_every_piece_stay_on_the_device(monkeypatch, fake, device, scheme, all_pieces):
    """There is a kernel for each 2048 rows, with row numbers of its own."""
    if not all_pieces:
        monkeypatch.setattr(accelerator_kernels, "Remembered", LastAlone)
        device = AcceleratorDevice()
    pool = PagedPool(fake.on_device(torch.arange(300 * 32 * 8).to(torch.uint8).view(300, 32, 8)))
    stager, table = Stager(device, scheme=scheme), list(range(299, -1, -1))
    for turn in range(4):
        if turn == 2:
            made, pinned, uploads = len(fake.allocated), len(fake.pinned), len(fake.log)
        read = stager.read(pool, table, 5, 8197)
        read.wait()
        assert same(read.result(), plain_read(pool.tensor, table, 5, 8197))
        assert (read.stats.launches, read.stats.copies) == (4, 4)
        read.release()
    copies = [noted.what for noted in fake.log[uploads:]].count("copy")
    again = 0 if all_pieces else 2 * 4
    assert (len(fake.allocated) - made, len(fake.pinned) - pinned, copies) == (again, again, 2 * 4 + again)


def test_device_memory_of_a_scheme_comes_from_a_stream_that_nothing_runs_on(fake, device):
    pool = PagedPool(fake.on_device(torch.rand(6, 4, 3)))
    Stager(device, scheme="gather").read(pool, [5, 1], 0, 8).wait()
    streams = {noted.stream for noted in fake.log}
    (memory,) = {stream for stream, size in fake.allocated if size == 4 * 8 * 12}  # four slots of all rows
    assert memory not in streams
    assert {stream for stream, _ in fake.allocated if stream != memory} < streams - {CALLER, "host"}


def test_after_and_wait_stream_take_streams_and_events_of_torch(fake, device):
    pool, stager = PagedPool(fake.on_device(torch.rand(6, 4, 3))), Stager(device, scheme="direct")
    other, event = fake.Stream(name="other"), fake.Event()
    event.record(other)
    for after in (other, event):
        fake.log.clear()
        read = stager.read(pool, [5], 0, 2, after=after)
        side = read.stream
        assert side is not None
        assert [noted.what for noted in fake.log if noted.what.startswith("wait for")] == ["wait for other"]
        read.wait_stream(other)
        assert fake.log[-1].stream == "other"
        read.wait_stream()
        assert fake.log[-1].stream == CALLER
        assert fake.log[-1].what.startswith("wait for side")
        read.wait()
    for wrong in ("copy", 7):
        with pytest.raises(DeviceError, match=r"after is a (str|int)"):
            stager.read(pool, [5], 0, 2, after=wrong)
        with pytest.raises(DeviceError, match=r"stream is a (str|int)"):
            device.order_before(device.event(), wrong)


def test_memory_of_the_wrong_kind_is_refused_and_nothing_is_written(fake, device):
    pool = PagedPool(fake.on_device(torch.zeros(6, 4, 3)))
    rows = torch.ones(4, 3)
    with pytest.raises(DeviceError, match="not in pinned host memory"):
        Stager(device, scheme="gather_pinned").write(pool, [5], 0, rows)
    with pytest.raises(DeviceError, match="choose the scheme 'gather_pinned'"):
        Stager(device, scheme="gather_host").write(pool, [5], 0, rows)
    with pytest.raises(DeviceError, match="choose the scheme 'gather_pinned'"):
        Stager(device, scheme="gather_host").read(pool, [5], 0, 4, out=rows)
    with pytest.raises(DeviceError, match="meta, not on cpu"):
        device.view(Memory.DEVICE, torch.empty(1, 1, 1, dtype=torch.uint8, device="meta"))
    assert not pool.tensor.any()
    assert rows.all()


def test_the_end_waits_for_its_own_streams_alone(fake):
    with AcceleratorDevice() as device:
        Stager(device, scheme="direct").read(PagedPool(fake.on_device(torch.rand(6, 4, 3))), [5], 0, 2).wait()
        fake.log.clear()
    assert {noted.what for noted in fake.log} == {"synchronize"}
    assert CALLER not in {noted.stream for noted in fake.log}
    with pytest.raises(ClosedError, match="closed"):
        device.allocate(Memory.PINNED, 1)
    with pytest.raises(ClosedError, match="closed"):
        device.synchronize("copy")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator here")
@pytest.mark.parametrize("name", [None, "cuda", "cuda:1", "cpu"])
def test_where_there_is_no_accelerator_the_error_says_so(name):
    with pytest.raises(DeviceError, match="torch has no accelerator"):
        AcceleratorDevice(name)


@pytest.mark.parametrize("forked", [True, False])
def test_a_forked_child_is_refused_by_name(device, forked):
    """As if the process were another one: a real fork of torch's fake would know no better."""
    event = device.event()
    device.record(event, "copy")
    if forked:
        device._process += 1
    calls = [
        lambda: device.allocate(Memory.PINNED, 3),
        lambda: device.record(event, "copy"),
        lambda: device.wait_event("copy", event),
        lambda: device.synchronize("copy"),
        lambda: device.wait(event),
        lambda: device.query(event),
        device.close,
    ]
    assert refusals(calls, ForkedError) == (len(calls) if forked else 0)
    device._process = os.getpid()
