"""The device that notes its waits: they are on the clock, and all else is the device's own."""

from itertools import count

import pytest
import torch

from bench import clock as module
from bench.clock import Clock, clocked
from kvstage import ClosedError, PagedPool, Stager, ThreadDevice


@pytest.mark.parametrize(("scheme", "waits"), [("per_row", 12), ("per_block", 3), ("direct", 1), ("gather_pinned", 1)])
def test_waits_are_on_the_clock_and_nothing_else_is(scheme: str, waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(module, "perf_counter", lambda: next(ticks))  # each wait looks twice, so it takes 1
    pool, clock = PagedPool(torch.arange(24, dtype=torch.uint8).view(3, 4, 2)), Clock()
    with ThreadDevice() as device:
        read = Stager(clocked(device, clock), scheme=scheme).read(pool, [2, 0, 1], 0, 12)
        read.wait()
        assert (clock.seconds, next(ticks)) == (waits, 2 * waits)
        assert (read.stats.waits, device.waits) == (waits, waits)
    assert torch.equal(read.result(), pool.tensor[[2, 0, 1]].view(12, 2))


def test_a_closed_device_is_seen_through_the_clock() -> None:
    with ThreadDevice() as device:
        stager = Stager(clocked(device, Clock()), scheme="direct")
    with pytest.raises(ClosedError):
        stager.read(PagedPool(torch.zeros(1, 1, 1)), [0], 0, 1)
