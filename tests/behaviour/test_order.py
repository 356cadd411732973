"""Ordering a call against the caller's own work: `after=`, `wait_stream`, parts of a batch, and that no wait is hidden."""

import pytest
import torch

from kvstage import ClosedError, DeviceError, PagedPool, SimDevice, Stager, Stats, ThreadDevice
from kvstage.devices.named_streams import NamedStreams
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

SCHEMES = sorted(LIBRARY)
AT_ONCE = ["direct", "gather_pinned", "gather_host", "gather_copy"]
TABLE = [3, 0, 4]
CALLER = "caller"


def everything(_stream: str, _index: int) -> bool:
    return True


def views(device, *tensors: torch.Tensor) -> list:
    """Handles on whole tensors, for work of the caller's own."""
    return [device.view(Memory.DEVICE, tensor.view(torch.uint8).view(1, 1, -1))[0, 0:1] for tensor in tensors]


def read_behind_the_caller(device, scheme: str, after: object) -> bool:
    """The caller's stream fills the pool; a read that comes behind it sees that."""
    blocks = random_blocks(1, 5, 4, (3,), torch.uint8)
    empty = torch.zeros_like(blocks.tensor)
    device.copy(CALLER, *views(device, blocks.tensor, empty))
    if after == "event":
        after = device.event()
        device.record(after, CALLER)
    read = Stager(device, scheme=scheme).read(PagedPool(empty), TABLE, 1, 10, after=after)
    read.wait()
    right = same(read.result(), plain_read(blocks.tensor, TABLE, 1, 10))
    device.synchronize(CALLER)
    return right


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("after", [CALLER, "event"])
def test_a_call_behind_a_stream_or_an_event_sees_what_the_caller_wrote(scheme, after):
    ran = [right for _, right in delays(lambda schedule: read_behind_the_caller(SimDevice(schedule), scheme, after))]
    assert ran.count(True) == len(ran) > 2
    with ThreadDevice() as device, device.hold(lambda stream, _: stream == CALLER):
        assert read_behind_the_caller(device, scheme, after)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_twin_without_after_it_does_not(scheme):
    with ThreadDevice() as device, device.hold(lambda stream, _: stream == CALLER):
        assert not read_behind_the_caller(device, scheme, None)


def used_on_the_callers_stream(device, scheme: str, waits: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What a copy of the caller's finds in `out`, once his stream waits for the read; and what it should."""
    blocks, out, copied = (
        random_blocks(1, 5, 4, (3,), torch.uint8),
        torch.zeros(9, 3, dtype=torch.uint8),
        torch.zeros(9, 3, dtype=torch.uint8),
    )
    read = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), TABLE, 1, 10, out=out)
    before = device.waits
    if waits:
        read.wait_stream(CALLER)
    device.copy(CALLER, *views(device, out, copied))
    assert device.waits == before, "the host goes on"
    device.synchronize(CALLER)
    read.wait()
    return copied, plain_read(blocks.tensor, TABLE, 1, 10)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_callers_stream_waits_and_the_host_goes_on(scheme):
    for _, (copied, expected) in delays(lambda schedule: used_on_the_callers_stream(SimDevice(schedule), scheme, True)):
        assert same(copied, expected)
    with ThreadDevice() as device, device.hold(lambda stream, _: stream != CALLER):
        copied, expected = used_on_the_callers_stream(device, scheme, True)
        assert same(copied, expected)


@pytest.mark.parametrize("scheme", AT_ONCE)
def test_twin_without_it_the_caller_finds_what_was_there(scheme):
    with ThreadDevice() as device, device.hold(lambda stream, _: stream != CALLER):
        copied, expected = used_on_the_callers_stream(device, scheme, False)
        assert not same(copied, expected)


def test_a_batch_makes_a_stream_wait_for_all_of_it():
    pools = [random_blocks(k, 5, 4, (3,), torch.uint8) for k in range(3)]
    outs = [torch.zeros(9, 3, dtype=torch.uint8) for _ in pools]
    with ThreadDevice() as device, device.hold(lambda stream, _: stream != CALLER):
        with Stager(device, scheme="direct").batch() as batch:
            for blocks, out in zip(pools, outs, strict=True):
                batch.read(PagedPool(blocks.tensor), TABLE, 1, 10, out=out)
        batch.wait_stream(CALLER)
        copies = [torch.zeros_like(out) for out in outs]
        for out, copied in zip(outs, copies, strict=True):
            device.copy(CALLER, *views(device, out, copied))
        device.synchronize(CALLER)
    for blocks, copied in zip(pools, copies, strict=True):
        assert same(copied, plain_read(blocks.tensor, TABLE, 1, 10))


def test_what_is_no_stream_or_event_is_refused_by_name():
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme="direct"), PagedPool(torch.ones(5, 4, 3))
        with pytest.raises(DeviceError, match="after is a float"):
            stager.read(pool, TABLE, 0, 4, after=0.5)
        with device.hold(everything):
            read = stager.read(pool, TABLE, 0, 4)
            for stream in (None, 3):
                with pytest.raises(DeviceError, match="no current stream"):
                    read.wait_stream(stream)
            read.wait()
            read.wait_stream(CALLER)  # nothing is left to wait for
        converting = stager.read(PagedPool(pool.tensor.bfloat16()), TABLE, 0, 4, dtype=torch.float32)
        with pytest.raises(DeviceError, match=r"at the host.*wait\(\)"):
            converting.wait_stream(CALLER)
    assert issubclass(ThreadDevice, NamedStreams)


@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_a_part_of_a_batch_is_waited_for_alone_while_the_others_are_under_way(scheme):
    """Layer by layer: the first layer computes while the rows of the later ones move."""
    pools = [random_blocks(k, 5, 4, (3,), torch.uint8) for k in range(4)]
    issued = 3 if scheme == "direct" else 1
    with ThreadDevice() as device, device.hold(lambda _stream, index: index >= issued) as held:
        with Stager(device, scheme=scheme).batch() as batch:
            for blocks in pools:
                batch.read(PagedPool(blocks.tensor), TABLE, 1, 12)
        assert len(batch) == 4
        batch.part(0).wait()
        assert same(batch.part(0).result(), plain_read(pools[0].tensor, TABLE, 1, 12))
        assert [batch.part(i).query() for i in range(4)] == [True, False, False, False]
        assert not batch.query()
        held.release()
        batch.wait()
        for i, blocks in enumerate(pools):
            assert same(batch.part(i).result(), plain_read(blocks.tensor, TABLE, 1, 12))
        for i in (-1, 4):
            with pytest.raises(IndexError, match=f"part {i} of a batch of 4"):
                batch.part(i)


def test_several_sequences_in_one_batch_of_reads_writes_and_copies():
    blocks, host = random_blocks(1, 9, 4, (3,), torch.uint8), PagedPool(torch.zeros(2, 8, 3, dtype=torch.uint8))
    tables, rows = {"first": [3, 0], "second": [5, 1, 7]}, random_rows(2, 5, (3,), torch.uint8)
    expected = {name: plain_read(blocks.tensor, table, 1, 7) for name, table in tables.items()}
    after = plain_write(blocks, [8, 2], 2, rows)
    moved = torch.cat([blocks.tensor[6], blocks.tensor[4]])
    with ThreadDevice() as device, device.hold(everything):
        stager, pool = Stager(device, scheme="direct"), PagedPool(blocks.tensor)
        with stager.batch() as batch:
            reads = {name: batch.read(pool, table, 1, 7) for name, table in tables.items()}
            batch.write(pool, [8, 2], 2, rows)
            batch.copy(pool, [6, 4], host, [1])
        batch.wait()
        assert (batch.stats.waits, device.waits) == (1, 1)
    assert {name: read.result().tolist() for name, read in reads.items()} == {
        name: each.tolist() for name, each in expected.items()
    }
    assert same(blocks.base, after)
    assert same(host.tensor[1], moved)
    with pytest.raises(ClosedError):
        batch.copy(pool, [6], host, [1])


WAITS = {"synchronize", "wait"}


class Watched(ThreadDevice):
    """Remembers all that may block the host."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked: list[str] = []

    def synchronize(self, stream):
        self.blocked.append("synchronize")
        super().synchronize(stream)

    def wait(self, event):
        self.blocked.append("wait")
        super().wait(event)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_hides_a_wait(scheme):
    """Every wait of the device is one that the scheme issues, or the caller's own, and the stats count it."""
    pool, host = PagedPool(torch.ones(5, 4, 3)), PagedPool(torch.ones(5, 4, 3))
    with Watched() as device:
        stager = Stager(device, scheme=scheme)
        for call in (
            lambda: stager.read(pool, TABLE, 1, 10, after=CALLER),
            lambda: stager.write(pool, TABLE, 1, torch.ones(9, 3), after=CALLER),
            lambda: stager.copy(pool, TABLE, host, TABLE, after=CALLER),
        ):
            before = len(device.blocked)
            transfer = call()
            assert len(device.blocked) - before == transfer.stats.waits
            while not transfer.query():
                pass
            transfer.wait_stream(CALLER)
            transfer.cancel()
            assert len(device.blocked) - before == transfer.stats.waits
        blocked = len(device.blocked)
        stager.close()
        assert len(device.blocked) == blocked
    assert Stats().waits == 0
