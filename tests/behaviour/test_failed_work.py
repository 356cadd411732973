"""Work that has failed: its transfer raises for ever, whoever met the error first, and nothing that is right is lost for it."""

from collections import deque
from collections.abc import Callable
from functools import partial

import pytest
import torch

from kvstage import DeviceError, HostDevice, OpenCLDevice, PagedPool, Stager, ThreadDevice, Transfer
from kvstage.devices.opencl.queue import UserEventGate
from kvstage.runtime.pending import Pending
from tests.support.devices import everything

ROWS = 4


class LinkError(Exception):
    """What a copy of the card raises."""


class OnceCard(HostDevice):
    """Does all its work at the next wait, in order. A copy that fails has ended, and is told once."""

    keeps_errors = False

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Callable[[], None]] = deque()
        self.failing = 0

    def copy(self, stream, source, target):
        self.queue.append(partial(super().copy, stream, source, target))

    def synchronize(self, stream):
        while self.queue:
            work = self.queue.popleft()
            if self.failing:
                self.failing -= 1
                raise LinkError
            work()

    def wait(self, event):
        self.synchronize("")

    def query(self, event):
        self.synchronize("")
        return True


def meet(meets: str, stager: Stager, other: Stager, failed: Transfer, pool: PagedPool) -> None:
    """Somebody waits, and meets the error of the failed transfer."""
    match meets:
        case "itself":
            failed.wait()
        case "a query":
            failed.query()
        case "the next call":
            stager.read(pool, [1], 0, 2)
        case "another transfer":
            other.read(pool, [1], 0, 2).wait()
        case "the waits of a scheme":
            Stager(stager._calls._device, scheme="per_block").read(pool, [1], 0, 2)
        case "close":
            other.read(pool, [1], 0, 2)
            other.close()


MEETS = ["itself", "a query", "the next call", "another transfer", "the waits of a scheme", "close"]


def later_answers(meets: str) -> list[str]:
    """What the failed transfer says after somebody has met its error."""
    card, pool = OnceCard(), PagedPool(torch.ones(4, 2, 3))
    stager, other = Stager(card, scheme="direct"), Stager(card, scheme="direct")
    card.failing = 1
    failed = stager.read(pool, [2, 0], 0, ROWS, out=torch.full((ROWS, 3), -1.0))
    with pytest.raises(LinkError):
        meet(meets, stager, other, failed, pool)
    answers = []
    for ask in (failed.wait, failed.query, failed.wait, failed.result, failed.wait_stream, partial(failed.wait, 1)):
        try:
            ask()
            answers.append("")
        except Exception as error:  # noqa: BLE001 (what it says is what is looked at)
            answers.append(type(error).__name__)
    again = stager.read(pool, [2, 0], 0, ROWS)
    again.wait()
    assert again.result().eq(1).all(), "the stager works on"
    return answers


@pytest.mark.parametrize("meets", MEETS)
def test_a_transfer_whose_work_failed_raises_for_ever(meets):
    assert later_answers(meets) == ["LinkError"] * 6


@pytest.mark.parametrize("meets", MEETS)
def test_twin_without_the_note_of_it_rows_that_never_arrived_are_handed_out(monkeypatch, watch, meets):
    monkeypatch.setattr(Pending, "fail", lambda pending, error: None)
    assert "" in later_answers(meets)
    watch.taken()


class Faulty(ThreadDevice):
    """The second copy fails."""

    def copy(self, stream, source, target):
        super().copy(stream, source, target[:, :3] if self.copies == 1 else target)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_device_that_keeps_errors_loses_nothing_that_is_right(monkeypatch, keeps):
    """Its twin does not say so: then nobody knows what the error was about."""
    monkeypatch.setattr(ThreadDevice, "keeps_errors", keeps)
    pool = PagedPool(torch.ones(4, 2, 3))
    with Faulty() as device:
        stager = Stager(device, scheme="direct")
        with device.hold(everything):
            right, wrong = stager.read(pool, [1], 0, 2), stager.read(pool, [2], 0, 2)
            with pytest.raises(ValueError, match="could not broadcast"):
                wrong.wait()
        if keeps:
            right.wait()
            assert right.result().eq(1).all()
        else:
            with pytest.raises(ValueError, match="could not broadcast"):
                right.wait()
        with pytest.raises(ValueError, match="could not broadcast"):
            wrong.result()
        stager.close()


def test_a_failure_is_told_after_the_device_was_closed_too(monkeypatch):
    monkeypatch.setattr(UserEventGate, "set", lambda gate: gate.event.set_status(-5))
    device = OpenCLDevice()
    with device.hold(everything):
        failed = Stager(device, scheme="direct").read(PagedPool(torch.ones(4, 2, 3)), [1], 0, 2)
    with pytest.raises(DeviceError, match="failed"):
        device.close()
    for _ in range(2):
        with pytest.raises(DeviceError, match="failed"):
            failed.wait()


@pytest.mark.parametrize("frees", [True, False])
def test_memory_of_a_failed_transfer_goes_back_when_its_stream_is_done(monkeypatch, frees):
    if not frees:
        monkeypatch.setattr(Pending, "free", lambda pending: None)
    card, pool = OnceCard(), PagedPool(torch.ones(4, 2, 3))
    stager, card.failing = Stager(card, scheme="direct"), 1
    failed = stager.read(pool, [2], 0, 2)
    with pytest.raises(LinkError):
        failed.wait()
    failed.cancel()
    stager.read(pool, [2], 0, 2).wait()
    assert (failed._result is None) == frees
