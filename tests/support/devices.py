"""The devices that a test can run on, and how to make each as late as a device may be."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from kvstage import OpenCLDevice, SimDevice, ThreadDevice
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.schedule import Move

REAL = {"threads": ThreadDevice, "opencl": OpenCLDevice}
"""Devices that are really asynchronous, with `hold` and `timed`."""


class HostFirst:
    """A schedule that lets streams move only while the host waits for something."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        return moves[0]


def everything(_stream: str, _index: int) -> bool:
    return True


@contextmanager
def late_simulated() -> Iterator[SimDevice]:
    with SimDevice(HostFirst()) as device:
        yield device


def late(kind: Callable) -> Callable:
    @contextmanager
    def made():
        with kind() as device, device.hold(everything):
            yield device

    return made


LATE = {"simulated": late_simulated, **{name: late(kind) for name, kind in REAL.items()}}
"""Devices on which nothing happens before the host waits for it, and what is forgotten shows every time."""


class Cells:
    """`count` bytes of one value that a device moves: `handle` for the device, `sum` for the host."""

    def __init__(self, device, count: int, value: int) -> None:
        self.tensor = torch.full((1, 1, count), value, dtype=torch.uint8)
        self.handle = device.view(Memory.DEVICE, self.tensor)[0, 0:1]

    @property
    def sum(self) -> int:
        return int(np.sum(self.tensor.numpy()))


def ones(device, count: int = 4) -> Cells:
    return Cells(device, count, 1)


def zeros(device, count: int = 4) -> Cells:
    return Cells(device, count, 0)


def refusals(calls: Iterable[Callable[[], object]], error: type[Exception]) -> int:
    """How many of the calls raise that error; any other one is raised here."""
    refused = 0
    for call in calls:
        try:
            call()
        except error:
            refused += 1
    return refused
