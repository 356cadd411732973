"""Rows of a sequence out of a paged cache, one at a time through one pinned row: the plainest staging loop there is."""

import pytest
import torch

from kvstage import CheckedDevice, HostAccessError
from kvstage_model import Memory

BLOCK_TABLE = [3, 0, 2]
"""Rows 0 and 1 of the sequence are in block 3, rows 2 and 3 in block 0, the last two in block 2."""


def read_rows(device: CheckedDevice, pool: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Rows `start` to `stop` of the sequence, [stop - start, width]. The staging row is free when its wait returns."""
    size, width = pool.shape[1:]
    staged = device.allocate(Memory.PINNED, width * pool.itemsize).view(pool.dtype)
    out = torch.empty(stop - start, width, dtype=pool.dtype)
    for position in range(start, stop):
        device.copy("d2h", pool[BLOCK_TABLE[position // size], position % size], staged)
        device.synchronize("d2h")
        out[position - start] = staged
    return out


def read_rows_without_its_wait(device: CheckedDevice, pool: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """The same, but that it waits once, at the end: it is right wherever copies happen to be quick."""
    size, width = pool.shape[1:]
    staged = device.allocate(Memory.PINNED, width * pool.itemsize).view(pool.dtype)
    out = torch.empty(stop - start, width, dtype=pool.dtype)
    for position in range(start, stop):
        device.copy("d2h", pool[BLOCK_TABLE[position // size], position % size], staged)
        out[position - start] = staged
    device.synchronize("d2h")
    return out


def some_pool(device: CheckedDevice) -> torch.Tensor:
    """Four blocks of two rows of three numbers: row r of block b holds 100 * b + 10 * r + 0, 1 and 2."""
    numbers = torch.arange(4)[:, None, None] * 100 + torch.arange(2)[:, None] * 10 + torch.arange(3)
    return device.host_view(numbers.to(torch.bfloat16), Memory.DEVICE)


EXPECTED = [[310.0, 312.0, 312.0], [0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [200.0, 201.0, 202.0]]
"""Rows 1 to 4 of the sequence: bfloat16 rounds 311 to 312."""


def test_every_row_arrives_under_every_delay(staging_schedule):
    device = staging_schedule.device()
    assert read_rows(device, some_pool(device), 1, 5).tolist() == EXPECTED


@pytest.mark.staging(schedules="exhaustive")
def test_every_row_arrives_under_every_schedule(staging_schedule):
    device = staging_schedule.device()
    assert read_rows(device, some_pool(device), 1, 5).tolist() == EXPECTED


def test_without_its_wait_it_is_caught(staging_schedule):
    with pytest.raises(HostAccessError) as caught, staging_schedule.device() as device:
        read_rows_without_its_wait(device, some_pool(device), 1, 5)
    title, first, second, *rest = str(caught.value).splitlines()
    assert title == "the host reads what copy 0 on stream d2h may still write: a wait is missing"
    assert first.endswith(': device.copy("d2h", pool[BLOCK_TABLE[position // size], position % size], staged)')
    assert second.endswith(": out[position - start] = staged")
    assert '    device.synchronize("d2h")' in rest, "and that is the wait to put back"
