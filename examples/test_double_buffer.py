"""Rows into a paged cache through two pinned rows in turn: the host fills one while the other is on its way."""

import pytest
import torch

from kvstage import CheckedDevice, HostAccessError
from kvstage_model import Memory

ROWS = torch.arange(15, dtype=torch.int32).view(5, 3)
PLACES = [(2, 1), (0, 0), (0, 1), (1, 0), (1, 1)]
"""Block and row of each."""


def write_rows(device: CheckedDevice, rows: torch.Tensor, pool: torch.Tensor) -> None:
    """Writes each row to its place. An event that was never recorded holds nobody up, so the first two waits are over at once."""
    staged = device.allocate(Memory.PINNED, 2 * rows[0].nbytes).view(rows.dtype).view(2, -1)
    sent = [device.event(), device.event()]
    for number, (block, row) in enumerate(PLACES):
        slot = number % 2
        device.wait(sent[slot])
        staged[slot] = rows[number]
        device.copy("h2d", staged[slot], pool[block, row])
        device.record(sent[slot], "h2d")
    device.synchronize("h2d")


def write_rows_with_early_records(device: CheckedDevice, rows: torch.Tensor, pool: torch.Tensor) -> None:
    """The same with two lines swapped: an event marks what was issued before it, and the copy comes after."""
    staged = device.allocate(Memory.PINNED, 2 * rows[0].nbytes).view(rows.dtype).view(2, -1)
    sent = [device.event(), device.event()]
    for number, (block, row) in enumerate(PLACES):
        slot = number % 2
        device.wait(sent[slot])
        staged[slot] = rows[number]
        device.record(sent[slot], "h2d")
        device.copy("h2d", staged[slot], pool[block, row])
    device.synchronize("h2d")


def empty_pool(device: CheckedDevice) -> torch.Tensor:
    return device.host_view(torch.full((3, 2, 3), -1, dtype=torch.int32), Memory.DEVICE)


def test_every_row_is_at_its_place_under_every_delay(staging_schedule):
    device = staging_schedule.device()
    pool = empty_pool(device)
    write_rows(device, ROWS, pool)
    expected = [[[3, 4, 5], [6, 7, 8]], [[9, 10, 11], [12, 13, 14]], [[-1, -1, -1], [0, 1, 2]]]
    assert pool.tolist() == expected


def test_an_early_record_is_caught(staging_schedule):
    with pytest.raises(HostAccessError) as caught, staging_schedule.device() as device:
        write_rows_with_early_records(device, ROWS, empty_pool(device))
    title, first, second, *_ = str(caught.value).splitlines()
    assert title == "the host writes what copy 0 on stream h2d may still read: a wait is missing"
    assert first.endswith(': device.copy("h2d", staged[slot], pool[block, row])')
    assert second.endswith(": staged[slot] = rows[number]")
