"""A kernel packs rows of a pool on one stream, and copies take them to the host on another: events hold each back for the other."""

import numpy as np
import pytest
import torch

from kvstage import CheckedDevice, RaceError
from kvstage_model import Memory

PIECES = [np.array([5, 0]), np.array([3, 4]), np.array([1, 2])]
"""The rows of the pool that are wanted, two at a time: row 5 is row 1 of block 2."""


def read_rows(device: CheckedDevice, pool: torch.Tensor, out: torch.Tensor) -> None:
    """Takes each piece of rows to `out` [pieces, rows, width] through one packed buffer on the device."""
    packed = device.allocate(Memory.DEVICE, out[0].nbytes).view(out[0].shape)
    gathered, moved = device.event(), device.event()
    for piece, index in enumerate(PIECES):
        device.wait_event("compute", moved)
        device.gather("compute", pool, index, packed)
        device.record(gathered, "compute")
        device.wait_event("copies", gathered)
        device.copy("copies", packed, out[piece])
        device.record(moved, "copies")
    device.wait(moved)


def read_rows_without_a_way_back(device: CheckedDevice, pool: torch.Tensor, out: torch.Tensor) -> None:
    """The same, but that the kernel does not wait until the packed rows have left."""
    packed = device.allocate(Memory.DEVICE, out[0].nbytes).view(out[0].shape)
    gathered, moved = device.event(), device.event()
    for piece, index in enumerate(PIECES):
        device.gather("compute", pool, index, packed)
        device.record(gathered, "compute")
        device.wait_event("copies", gathered)
        device.copy("copies", packed, out[piece])
        device.record(moved, "copies")
    device.wait(moved)


def read_rows_without_a_way_there(device: CheckedDevice, pool: torch.Tensor, out: torch.Tensor) -> None:
    """The same, but that the copy does not wait until the rows are packed."""
    packed = device.allocate(Memory.DEVICE, out[0].nbytes).view(out[0].shape)
    moved = device.event()
    for piece, index in enumerate(PIECES):
        device.wait_event("compute", moved)
        device.gather("compute", pool, index, packed)
        device.copy("copies", packed, out[piece])
        device.record(moved, "copies")
    device.synchronize("compute")
    device.wait(moved)


def some_pool(device: CheckedDevice) -> torch.Tensor:
    """Three blocks of two rows of four bytes; row r of the pool holds 10 * r + 0, 1, 2 and 3."""
    return device.host_view((torch.arange(6)[:, None] * 10 + torch.arange(4)).to(torch.uint8).view(3, 2, 4), Memory.DEVICE)


def result(device: CheckedDevice) -> torch.Tensor:
    return device.allocate(Memory.PINNED, 24).view(3, 2, 4)


def right(device: CheckedDevice) -> bool:
    """Whether every row arrives."""
    out = result(device)
    read_rows(device, some_pool(device), out)
    firsts = [[50, 0], [30, 40], [10, 20]]
    return bool(out.tolist() == [[[first + at for at in range(4)] for first in piece] for piece in firsts])


def test_every_row_arrives_under_every_delay(staging_schedule):
    assert right(staging_schedule.device())


@pytest.mark.staging(schedules="seeded", seed=1, runs=50)
def test_every_row_arrives_under_random_schedules(staging_schedule):
    assert right(staging_schedule.device())


def test_a_kernel_that_does_not_wait_is_caught(staging_schedule):
    message = "gather 1 on stream compute may write what copy 0 on stream copies may still read: nothing orders them"
    with pytest.raises(RaceError, match=message), staging_schedule.device() as device:
        read_rows_without_a_way_back(device, some_pool(device), result(device))


def test_a_copy_that_does_not_wait_is_caught(staging_schedule):
    message = "copy 0 on stream copies may read what gather 0 on stream compute may still write: nothing orders them"
    with pytest.raises(RaceError, match=message), staging_schedule.device() as device:
        read_rows_without_a_way_there(device, some_pool(device), result(device))
