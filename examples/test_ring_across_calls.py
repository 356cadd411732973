"""A ring of pinned rows that lives longer than a call: what one call leaves under way, the next must not overwrite."""

import pytest
import torch

from kvstage import CheckedDevice, HostAccessError
from kvstage_model import Memory

SLOTS, WIDTH = 2, 3
CALLS = [[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[10, 11, 12], [13, 14, 15]]]
"""The rows of two calls."""


class Uploader:
    """Takes rows to the device, and returns while the last of them are on their way: `drain` waits for those."""

    def __init__(self, device: CheckedDevice) -> None:
        self.device = device
        self.ring = device.allocate(Memory.PINNED, SLOTS * WIDTH).view(SLOTS, WIDTH)
        self.sent = [device.event() for _ in range(SLOTS)]

    def upload(self, rows: list[list[int]], target: torch.Tensor) -> None:
        """Row i goes to row i of the target."""
        for number, row in enumerate(rows):
            slot = number % SLOTS
            self.device.wait(self.sent[slot])
            self.ring[slot] = torch.tensor(row)
            self.device.copy("h2d", self.ring[slot], target[number])
            self.device.record(self.sent[slot], "h2d")

    def drain(self) -> None:
        """Waits for all that is on its way."""
        self.device.synchronize("h2d")


class ForgetfulUploader(Uploader):
    """The events belong to a call, and the ring to the object: the first rows of a call wait for nothing."""

    def upload(self, rows: list[list[int]], target: torch.Tensor) -> None:
        """Row i goes to row i of the target."""
        sent = [self.device.event() for _ in range(SLOTS)]
        for number, row in enumerate(rows):
            slot = number % SLOTS
            self.device.wait(sent[slot])
            self.ring[slot] = torch.tensor(row)
            self.device.copy("h2d", self.ring[slot], target[number])
            self.device.record(sent[slot], "h2d")


def uploaded(uploader: Uploader, calls: list[list[list[int]]]) -> list[list[list[int]]]:
    """What the targets of some calls hold, one call behind the other."""
    device = uploader.device
    targets = [device.allocate(Memory.DEVICE, len(rows) * WIDTH).view(-1, WIDTH) for rows in calls]
    for rows, target in zip(calls, targets, strict=True):
        uploader.upload(rows, target)
    uploader.drain()
    return [target.tolist() for target in targets]


def test_two_calls_are_right_under_every_delay(staging_schedule):
    assert uploaded(Uploader(staging_schedule.device()), CALLS) == CALLS


@pytest.mark.staging(schedules="seeded", seed=1, runs=50)
def test_many_calls_are_right_under_random_schedules(staging_schedule):
    assert uploaded(Uploader(staging_schedule.device()), CALLS * 2) == CALLS * 2


def test_a_single_call_shows_no_mistake(staging_schedule):
    assert uploaded(ForgetfulUploader(staging_schedule.device()), CALLS[:1]) == CALLS[:1]


def test_events_that_end_with_a_call_are_caught(staging_schedule):
    with pytest.raises(HostAccessError) as caught, staging_schedule.device() as device:
        uploaded(ForgetfulUploader(device), CALLS)
    title, first, second, *_ = str(caught.value).splitlines()
    assert title == "the host writes what copy 2 on stream h2d may still read: a wait is missing"
    assert first.endswith(': self.device.copy("h2d", self.ring[slot], target[number])')
    assert second.endswith(": self.ring[slot] = torch.tensor(row)")
