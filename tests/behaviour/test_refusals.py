"""Calls that are refused, or come too late, leave nothing behind; and what is no tensor, pool or device is named as such."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from kvstage import (
    AllocationError,
    BlockIdError,
    ClosedError,
    DeviceError,
    HostDevice,
    KVStageError,
    LayoutError,
    PagedPool,
    RangeError,
    SchemeError,
    Stager,
    TableTooShortError,
    ThreadDevice,
    UnknownSchemeError,
    ops,
)
from kvstage.runtime.performer import Performer
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.allocations import CountingDevice
from tests.support.plain import same

TABLE = [3, 0, 4]


def stream_first(performer: Performer, stream: str) -> None:
    """What takes the stream for one with work on it before the order is accepted."""
    performer._streams.append(stream)
    performer._device.order_after(stream, performer._order.after)


@pytest.mark.parametrize("scheme", ["per_block", "direct", "gather_pinned"])
@pytest.mark.parametrize("in_order", [True, False])
def test_an_order_that_is_refused_leaves_nothing_to_wait_for_and_no_trace(monkeypatch, scheme, in_order):
    if not in_order:
        monkeypatch.setattr(Performer, "_begin", stream_first)
    pool, rows = PagedPool(torch.zeros(5, 4, 3)), torch.ones(8, 3)
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        version = pool.tensor._version
        for call in (lambda: stager.write(pool, TABLE, 0, rows, after=123), lambda: stager.read(pool, TABLE, 0, 8, after=123)):
            with pytest.raises(DeviceError, match="after is a int"):
                call()
        assert (pool.tensor._version == version) == in_order
        usual = Stager(device, scheme=scheme).read(pool, TABLE, 0, 8).stats
        read = stager.read(pool, TABLE, 0, 8)
        assert (read.stats == usual) == in_order
        read.wait()
        assert read.result().eq(0).all()


def test_a_write_that_breaks_off_is_seen_by_the_version_counter():
    class Broken(ThreadDevice):
        def record(self, event, stream):
            raise ZeroDivisionError

    pool = PagedPool(torch.zeros(5, 4, 3))
    with Broken() as device:
        stager = Stager(device, scheme="direct")
        version = pool.tensor._version
        with pytest.raises(ZeroDivisionError):
            stager.write(pool, TABLE, 0, torch.ones(8, 3))
        assert pool.tensor._version > version
        stager.close()
        assert pool.tensor[3].eq(1).all()


@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_a_read_of_no_rows_is_an_ordinary_tensor_too(device, dtype):
    with torch.inference_mode():
        read = Stager(device, scheme="direct").read(PagedPool(torch.ones(5, 4, 3, dtype=torch.bfloat16)), TABLE, 2, 2, dtype=dtype)
        assert torch.empty(0).is_inference(), "what it would be"
    read.wait()
    assert (read.result().shape, read.result().dtype) == ((0, 3), dtype or torch.bfloat16)
    assert not read.result().is_inference()


def test_a_stager_that_is_closed_chooses_nothing(device):
    stager = Stager(device)
    stager.close()
    with pytest.raises(ClosedError, match="make a new one"):
        stager.choice(PagedPool(torch.ones(5, 4, 3)), TABLE, 0, 2)


@pytest.mark.parametrize("closed", [True, False])
def test_what_is_released_after_the_end_is_not_kept(closed):
    with CountingDevice() as device:
        stager = Stager(device, scheme="direct")
        read = stager.read(PagedPool(torch.ones(5, 4, 3)), TABLE, 0, 8)
        read.wait()
        if closed:
            stager.close()
        read.release()
        kept = stager._calls._buffers._kept[Memory.PINNED]
        assert len(kept) == (not closed)
        stager.close()
        assert not kept


def nested(**layout):
    with warnings.catch_warnings(action="ignore"):  # torch's, of an interface that may change
        return torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(2, 3)], **layout)


def per_channel():
    with warnings.catch_warnings(action="ignore"):
        return torch.quantize_per_channel(torch.zeros(2, 2, 2), torch.ones(2), torch.zeros(2), 0, torch.qint8)


def csr():
    with warnings.catch_warnings(action="ignore"):
        return torch.zeros(4, 3).to_sparse_csr()


def nested_ids():
    with warnings.catch_warnings(action="ignore"):
        return torch.nested.nested_tensor([torch.tensor([1]), torch.tensor([1, 2])])


def fake(tensor):
    """What torch traces a program with."""
    return FakeTensorMode().from_tensor(tensor)


def made():
    """A stager for calls that are refused late: of the test, which watches it."""
    return Stager(HostDevice(), scheme="direct")


class Short(list):
    """Has fewer entries than it says."""

    def __getitem__(self, at):
        return super().__getitem__(at)[:1] if isinstance(at, slice) else super().__getitem__(at)


HUGE = 10**5000
"""More digits than Python prints."""
STAGER, POOL = Stager(HostDevice()), PagedPool(torch.zeros(5, 4, 3))
NO_DEVICE = SimpleNamespace(copy=print, closed=False)
NAMED = [
    (lambda: STAGER.write(POOL, [1], 0, np.zeros((2, 3), np.float32)), LayoutError, "rows is a ndarray.*torch.from_numpy"),
    (lambda: STAGER.write(POOL, [1], 0, None), LayoutError, "rows is a NoneType"),
    (lambda: STAGER.read(POOL, [1], 0, 2, out=[1]), LayoutError, "out is a list"),
    (lambda: STAGER.read(POOL.tensor, [1], 0, 2), LayoutError, r"pool is a Tensor.*PagedPool\(tensor\)"),
    (lambda: STAGER.write(POOL.tensor, [1], 0, torch.zeros(2, 3)), LayoutError, "pool is a Tensor"),
    (lambda: STAGER.choice(POOL.tensor, [1], 0, 2), LayoutError, "pool is a Tensor"),
    (lambda: STAGER.copy(POOL.tensor, [1], POOL, [1]), LayoutError, "source is a Tensor"),
    (lambda: STAGER.copy(POOL, [1], None, [1]), LayoutError, "target is a NoneType"),
    (lambda: PagedPool(np.zeros((5, 4, 3)), name="latent"), LayoutError, "pool 'latent' is made of a ndarray"),
    (lambda: Stager("cuda"), DeviceError, r"device is 'cuda', without.*view.*AcceleratorDevice\(\)"),
    (lambda: Stager(None), DeviceError, "device is None"),
    (lambda: Stager(ThreadDevice), DeviceError, "the class ThreadDevice: pass a device"),
    (lambda: Stager(NO_DEVICE, scheme="direct"), DeviceError, "without view, allocate, gather"),
    (lambda: Stager(HostDevice(), pinned_bytes=-5), RangeError, "pinned_bytes is -5"),
    (lambda: Stager(HostDevice(), pinned_bytes="1 GB"), RangeError, "'1 GB'"),
    (lambda: Stager(HostDevice(), pinned_bytes=0.5), RangeError, "0.5"),
    (lambda: Stager(HostDevice(), scheme=["direct"]), UnknownSchemeError, r"no scheme \['direct'\]: choose 'auto'"),
    (lambda: Stager(HostDevice(), scheme="ring", slots="2"), SchemeError, "slots is '2': a ring needs at least 1"),
    (lambda: Stager(HostDevice(), scheme="ring", slots=2.5), SchemeError, "slots is 2.5"),
    (lambda: Stager(HostDevice(), costs="pcie"), SchemeError, "costs are 'pcie': pass a `kvstage.Costs`"),
    (lambda: Stager(HostDevice(), on_transfer=3), SchemeError, "on_transfer is 3: pass a function"),
    (lambda: PagedPool(nested()), LayoutError, "nested"),
    (lambda: PagedPool(nested(layout=torch.jagged)), LayoutError, "nested"),
    (lambda: STAGER.write(POOL, [1], 0, nested()), LayoutError, "rows is a nested tensor"),
    (lambda: STAGER.read(POOL, [1], 0, 2, out=nested(layout=torch.jagged)), LayoutError, "out is a nested tensor"),
    (lambda: PagedPool(per_channel()), LayoutError, "quantised per channel"),
    (lambda: PagedPool(fake(torch.zeros(5, 4, 3))), LayoutError, "FakeTensor without memory"),
    (lambda: STAGER.read(POOL, torch.tensor([1, 2]).to_sparse(), 0, 6), LayoutError, "table is torch.sparse_coo"),
    (lambda: STAGER.read(POOL, nested_ids(), 0, 6), LayoutError, "or nested"),
    (lambda: STAGER.read(POOL, fake(torch.tensor([1, 2])), 0, 6), LayoutError, "FakeTensor without memory"),
    (lambda: STAGER.read(POOL, torch.tensor([1, 2], device="meta"), 0, 6), DeviceError, "on meta"),
    (lambda: STAGER.read(POOL, Short([1, 2, 3]), 0, 8), TableTooShortError, "says that it has 3 entries"),
    (lambda: STAGER.read(POOL, [HUGE], 0, 2), BlockIdError, "entry 0 is an integer of 16610 bits"),
    (lambda: STAGER.read(POOL, [1.0], 0, 2), BlockIdError, "entry 0 is 1.0"),
    (lambda: STAGER.write(POOL, [1], "0", torch.zeros(1, 3)), RangeError, "start is '0'"),
    (lambda: STAGER.write(POOL, [1], 0.0, torch.zeros(1, 3)), RangeError, "start is 0.0"),
    (lambda: STAGER.read(POOL, [1], 0, np.float32(2)), RangeError, "stop is"),
    (lambda: STAGER.read(POOL, [1], 0, HUGE), RangeError, "stop is an integer of 16610 bits"),
    (lambda: STAGER.read(POOL, [1], -HUGE, 2), RangeError, "start is an integer"),
    (lambda: STAGER.read(POOL, [1], 0, fake(torch.tensor(2))), RangeError, "stop is"),
    (lambda: STAGER.read(POOL, [1], 0, torch.tensor(2, device="meta")), RangeError, "stop is a tensor on meta"),
    (lambda: STAGER.read(POOL, [1], 0, (n for n in [2])), RangeError, "stop is <generator"),
    (lambda: STAGER.read(POOL, (n for n in [1]), 0, 2), LayoutError, "is a generator"),
    (lambda: STAGER.read(POOL, [1], 0, 4, out=csr()), LayoutError, "out is torch.sparse_csr"),
    (lambda: STAGER.write(POOL, [1], 0, csr()), LayoutError, "rows is torch.sparse_csr"),
    (lambda: STAGER.read(POOL, [1], 0, 4, out=fake(torch.zeros(4, 3))), LayoutError, "out is a FakeTensor"),
    (lambda: STAGER.write(POOL, [1], 0, fake(torch.zeros(4, 3))), LayoutError, "rows is a FakeTensor"),
    (lambda: STAGER.write(POOL, [1], 0, torch.zeros(4, 3, device="meta")), DeviceError, "rows is on meta"),
    (lambda: STAGER.write(POOL, [1], 0, torch.tensor(1.0)), LayoutError, "rows has shape"),
    (lambda: STAGER.read(POOL, [1], 0, 4, dtype="float32"), LayoutError, "dtype is float32"),
    (lambda: made().read(POOL, [1], 0, 4, after=np.zeros(2)), DeviceError, "after is a ndarray"),
    (lambda: made().read(POOL, [1], 0, 4, after=torch.zeros(2)), DeviceError, "after is a Tensor"),
    (lambda: made().read(POOL, [1], 0, 4).wait(timeout=float("nan")), RangeError, "timeout is nan"),
    (lambda: made().read(POOL, [1], 0, 4).wait(timeout="a"), RangeError, "timeout is 'a'"),
    (lambda: made().read(POOL, [1], 0, 4).wait(timeout=10**400), RangeError, "timeout is 1000"),
    (lambda: made().read(POOL, [1], 0, 4).wait(timeout=HUGE), RangeError, "timeout is an integer"),
    (lambda: STAGER.choice(POOL, [1], 0, 4, "read"), SchemeError, "direction is 'read'"),
    (lambda: Stager(HostDevice(), scheme="ring", slots=-HUGE), SchemeError, "slots is an integer"),
    (lambda: Stager(HostDevice(), scheme="ring", slots=10**9).read(POOL, [1], 0, 4), AllocationError, "48000000000 bytes"),
    (lambda: Stager(HostDevice(), scheme="ring", slots=HUGE).read(POOL, [1], 0, 4), AllocationError, "an integer of"),
    (lambda: Stager(HostDevice(), pinned_bytes=-HUGE), RangeError, "pinned_bytes is an integer"),
    (lambda: ops.number_of("direct"), SchemeError, "'direct' has no number"),
]


@pytest.mark.parametrize(("call", "error", "says"), NAMED)
def test_what_is_of_the_wrong_kind_is_named(call, error, says):
    assert issubclass(error, KVStageError)
    with pytest.raises(error, match=says):
        call()
    assert same(POOL.tensor, torch.zeros(5, 4, 3))


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
def test_a_budget_may_be_nothing_at_all(device, scheme):
    assert Stager(device, scheme=scheme, pinned_bytes=0).read(PagedPool(torch.ones(5, 4, 3)), TABLE, 0, 0).query()
