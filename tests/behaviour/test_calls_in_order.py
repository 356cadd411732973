"""Calls of one stager whose schemes use different streams are in order, also where nobody has waited in between."""

import pytest
import torch

from kvstage import DeviceError, PagedPool, SimDevice, Stager, ThreadDevice
from kvstage.costs import PCIE_5
from kvstage.recorder.device import RecordingDevice
from kvstage.runtime.pending import Pending
from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import WaitEvent
from kvstage_model.language.scheme import CALLER
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.schemes.registry import Pair
from tests.support.devices import LATE, REAL
from tests.support.faulty import Faulty
from tests.support.plain import plain_read, random_blocks, random_rows, same
from tests.support.turns import on_stream

TABLE = [3, 0, 4]
START, STOP = 1, 6
APART = Pair(on_stream("reads").read, on_stream("writes").write)
"""Reads on one stream, writes on another one; copies between pools are on a third."""


class Case:
    """Two pools, and a stager whose reads, writes and copies are on three streams."""

    def __init__(self, device) -> None:
        self.blocks, self.others = (random_blocks(seed, 5, 2, (3,), torch.uint8) for seed in (1, 2))
        self.pool, self.other = PagedPool(self.blocks.tensor), PagedPool(self.others.tensor)
        self.stager = Stager(device, scheme=APART)
        self.rows = random_rows(3, STOP - START, (3,), torch.uint8)

    def write_then_read(self) -> bool:
        write = self.stager.write(self.pool, TABLE, START, self.rows)
        read = self.stager.read(self.pool, TABLE, START, STOP)
        read.wait()
        write.wait()
        return same(read.result(), self.rows)

    def read_then_write(self) -> bool:
        before = plain_read(self.blocks.tensor, TABLE, START, STOP)
        read = self.stager.read(self.pool, TABLE, START, STOP)
        write = self.stager.write(self.pool, TABLE, START, self.rows)
        write.wait()
        read.wait()
        return same(read.result(), before)

    def copy_then_read(self) -> bool:
        copy = self.stager.copy(self.other, TABLE, self.pool, TABLE)
        read = self.stager.read(self.pool, TABLE, START, STOP)
        read.wait()
        copy.wait()
        return same(read.result(), plain_read(self.others.tensor, TABLE, START, STOP))

    def read_then_copy(self) -> bool:
        before = plain_read(self.blocks.tensor, TABLE, START, STOP)
        read = self.stager.read(self.pool, TABLE, START, STOP)
        copy = self.stager.copy(self.other, TABLE, self.pool, TABLE)
        copy.wait()
        read.wait()
        return same(read.result(), before)

    def across_a_third(self) -> bool:
        """The copy is behind the write, as the read of another pool in between is."""
        write = self.stager.write(self.pool, TABLE, START, self.rows)
        between = self.stager.read(self.other, TABLE, START, STOP)
        copy = self.stager.copy(self.pool, TABLE, self.other, TABLE)
        copy.wait()
        right = same(plain_read(self.others.tensor, TABLE, START, STOP), self.rows)
        for transfer in (write, between):
            transfer.wait()
        return right


WAYS = ("write_then_read", "read_then_write", "copy_then_read", "read_then_copy", "across_a_third")


@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_comes_behind_what_earlier_ones_left_on_other_streams(kind, way):
    with LATE[kind]() as device:
        assert getattr(Case(device), way)()


@pytest.mark.parametrize("way", WAYS)
def test_under_every_delay(way):
    ran = [right for _, right in delays(lambda schedule: getattr(Case(SimDevice(schedule)), way)())]
    assert ran.count(True) == len(ran) > 5


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("way", WAYS)
def test_twin_without_that_each_of_them_is_wrong(monkeypatch, kind, way):
    monkeypatch.setattr(Pending, "precede", lambda pending, stream: None)
    with LATE[kind]() as device:
        assert not getattr(Case(device), way)()
    assert False in [right for _, right in delays(lambda schedule: getattr(Case(SimDevice(schedule)), way)())]


class Link(SimDevice):
    """Pinned memory is only what the device has allocated as such, as on an accelerator."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.pinned: list[torch.Tensor] = []

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        allocated = super().allocate(memory, size)
        if memory is Memory.PINNED:
            self.pinned.append(allocated)
        return allocated

    def view(self, memory: Memory, tensor: torch.Tensor):
        inside = (each.data_ptr() <= tensor.data_ptr() < each.data_ptr() + each.numel() for each in self.pinned)
        if memory is Memory.PINNED and not any(inside):
            raise DeviceError("this is not pinned")
        return super().view(memory, tensor)


def by_auto(schedule: Schedule) -> bool:
    """Whether a read to ordinary rows finds what a write from pinned ones moves: by kernels on two streams."""
    pool, table = PagedPool(torch.zeros(66, 32, 4, dtype=torch.uint8)), [*range(65, 1, -1)]
    out = torch.zeros(2048, 4, dtype=torch.uint8)
    with Link(schedule) as device, Stager(device, costs=PCIE_5) as stager:
        rows = device.allocate(Memory.PINNED, out.numel()).view(out.shape).fill_(7)
        write = stager.write(pool, table, 0, rows)
        read = stager.read(pool, table, 0, len(out), out=out)
        assert (write.choice.scheme, read.choice.scheme) == ("gather_pinned", "gather")
        read.wait()
        right = bool((out == 7).all())
        write.wait()
    return right


def test_what_auto_picks_is_in_order():
    ran = [right for _, right in delays(by_auto)]
    assert ran.count(True) == len(ran) > 5


def test_twin_what_auto_picks_is_not_in_order_of_itself(monkeypatch):
    monkeypatch.setattr(Pending, "precede", lambda pending, stream: None)
    assert False in [right for _, right in delays(by_auto)]


def test_the_host_waits_for_nothing_and_one_stream_is_left_as_it_is():
    with ThreadDevice() as device:
        counted = Faulty(device, -1, False)
        case = Case(counted)

        def orders() -> int:
            return sum(name in ("order_after", "wait_event") for name in counted.seen)

        with device.hold(lambda _stream, _index: True):
            for _ in range(3):
                case.stager.write(case.pool, TABLE, START, case.rows)
            assert (orders(), device.waits) == (3, 0), "the caller's, of each call"
            read = case.stager.read(case.pool, TABLE, START, STOP)
            assert (orders(), device.waits) == (5, 0), "the caller's, and the last write"
            read.wait()
            assert (read.stats.waits, device.waits) == (1, 1)
            case.stager.read(case.pool, TABLE, START, STOP).wait()
            assert (orders(), device.waits) == (6, 2), "by now the write is seen to have ended"
            case.stager.close()


def test_a_call_behind_one_that_has_failed_and_told_so_is_right():
    with ThreadDevice() as device:
        counted = Faulty(device, -1, False)
        case = Case(counted)
        counted.copy = lambda stream, source, target: device.copy(stream, source, target[:, :1])
        write = case.stager.write(case.pool, TABLE, START, case.rows)
        counted.copy = device.copy
        with pytest.raises(ValueError, match="could not broadcast"):
            write.wait()
        for _ in range(2):
            read = case.stager.read(case.pool, TABLE, START, STOP)
            read.wait()
            assert same(read.result(), plain_read(case.blocks.tensor, TABLE, START, STOP))


def test_a_recorder_notes_the_order_as_the_callers_also_of_a_device_whose_callers_have_streams_of_their_own():
    with ThreadDevice() as device:
        recorder = RecordingDevice(Faulty(device, -1, False))
        case = Case(recorder)
        with device.hold(lambda stream, index: True):  # a write that has ended would need no order
            with recorder.call():
                case.stager.write(case.pool, TABLE, START, case.rows)
            with recorder.call():
                case.stager.read(case.pool, TABLE, START, STOP)
        case.stager.close()
    waits = [each for each in recorder.program if isinstance(each.operation, WaitEvent)]
    assert [(each.call, each.phase, each.operation.stream) for each in waits] == [(1, CALLER, "reads")]
