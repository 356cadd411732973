"""HostDevice: everything at once, in the caller's own memory."""

import numpy as np
import pytest
import torch

from kvstage import ClosedError, DeviceError, HostDevice, PagedPool, Stager, Stats
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

TABLE = [4, 5, 0, 7]
GEOMETRIES = [
    # block size, row, dtype, padding
    (32, (512,), torch.bfloat16, 0),
    (32, (257,), torch.bfloat16, 0),
    (16, (257,), torch.float32, 3),
    (3, (7,), torch.bfloat16, 5),
    (1, (1,), torch.uint8, 1),
    (5, (132,), torch.float8_e4m3fn, 12),
]


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
@pytest.mark.parametrize(("size", "row", "dtype", "padding"), GEOMETRIES)
def test_every_scheme_reads_and_writes_the_rows_of_the_definition(scheme, size, row, dtype, padding):
    blocks = random_blocks(1, 9, size, row, dtype, padding)
    pool = PagedPool(blocks.tensor)
    with HostDevice() as device:
        stager = Stager(device, scheme=scheme)
        for start, stop in [(0, 4 * size), (size // 2, 3 * size + 1), (size, size + 1)]:
            before = blocks.memory()
            read = stager.read(pool, TABLE, start, stop)
            read.wait()
            assert same(read.result(), plain_read(blocks.tensor, TABLE, start, stop))
            assert torch.equal(blocks.base, before)
            rows = random_rows(start + stop, stop - start, row, dtype)
            after = plain_write(blocks, TABLE, start, rows)
            stager.write(pool, TABLE, start, rows).wait()
            assert torch.equal(blocks.base, after)


def test_one_kernel_and_one_wait_and_no_staging(monkeypatch):
    allocated = []

    def allocate(self, memory, size):
        allocated.append((memory, size))
        return torch.empty(size, dtype=torch.uint8)

    monkeypatch.setattr(HostDevice, "allocate", allocate)
    device, pool = HostDevice(), PagedPool(torch.arange(24.0).view(4, 3, 2))
    read = Stager(device, scheme="gather_host").read(pool, [2, 0], 1, 5)
    assert device.launches == 1
    read.wait()
    assert read.stats == Stats(copies=0, waits=1, bytes=4 * 8, launches=1)
    assert (device.copies, device.launches, device.waits) == (0, 1, 1)
    assert read.result().tolist() == [[14, 15], [16, 17], [0, 1], [2, 3]]
    assert allocated == [(Memory.PAGEABLE, 32)], "the result, and nothing else"
    Stager(HostDevice(), scheme="gather_pinned").read(pool, [2, 0], 1, 5, out=torch.empty(4, 2))
    assert len(allocated) == 1
    Stager(HostDevice(), scheme="gather_pinned").read(pool, [2, 0], 1, 5)  # the twin: its result is pinned memory
    assert allocated[1:] == [(Memory.PINNED, 32)]


def test_all_caches_of_a_step_ask_for_the_same_rows_once():
    indices = []
    device = HostDevice()
    real = device.gather
    device.gather = lambda stream, source, index, target: (indices.append(index), real(stream, source, index, target))
    stager, pools = Stager(device, scheme="gather_host"), [PagedPool(torch.rand(6, 4, width)) for width in (2, 3, 2)]
    table = [5, 1, 3]
    for pool in pools:
        read = stager.read(pool, table, 1, 11)
        read.wait()
        assert same(read.result(), plain_read(pool.tensor, [5, 1, 3], 1, 11))
    assert indices[0] is indices[1] is indices[2]
    table[1] = 0  # the same list, with another block in it
    read = stager.read(pools[0], table, 1, 11)
    read.wait()
    assert same(read.result(), plain_read(pools[0].tensor, [5, 0, 3], 1, 11))


def test_tensors_of_other_devices_and_work_after_the_end_are_refused():
    device = HostDevice()
    with pytest.raises(DeviceError, match="meta"):
        device.view(Memory.DEVICE, torch.empty(1, 1, 1, dtype=torch.uint8, device="meta"))
    device.close()
    device.close()
    rows, index = np.zeros((1, 1), np.uint8), np.zeros(1, np.int64)
    event = device.event()
    for work in [
        lambda: device.copy("s", rows, rows),
        lambda: device.gather("s", rows[None], index, rows),
        lambda: device.scatter("s", rows, rows[None], index),
        lambda: device.synchronize("s"),
        lambda: device.record(event, "s"),
        lambda: device.wait_event("s", event),
        lambda: device.allocate(Memory.PINNED, 1),
    ]:
        with pytest.raises(ClosedError, match="closed"):
            work()
    device.wait(event)
    assert device.query(event)
