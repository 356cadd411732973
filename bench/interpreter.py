"""What the library itself takes for an operation of a scheme: its calls on a device whose handles and methods do nothing."""

import statistics
import time
from typing import Any

import torch

from kvstage import HostDevice, PagedPool, Stager
from kvstage_model.language.buffers import Memory
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.schemes.registry import LIBRARY

from .pools import BLOCK_SIZE

ROWS = 8192
SCHEMES = ("per_row", "ring")
"""A wait behind every copy; and events, with two runs in one step."""
ROUNDS = 9


class NoRows:
    """A handle on nothing: a run of its rows is the same again, so that no view is made."""

    def __getitem__(self, run: tuple[int, slice]) -> "NoRows":
        return self


class IdleDevice(HostDevice):
    """Takes every operation of a copy and does nothing: no byte moves, and nothing is waited for."""

    def view(self, memory: Memory, tensor: torch.Tensor) -> Any:
        """Never of that memory."""
        return _NO_ROWS

    def copy(self, stream: str, source: Any, target: Any) -> None:
        """Nothing."""

    def host_copy(self, source: Any, target: Any) -> None:
        """Nothing."""

    def synchronize(self, stream: str) -> None:
        """Nothing."""

    def record(self, event: object, stream: str) -> None:
        """Nothing."""

    def wait(self, event: object) -> None:
        """Nothing."""


_NO_ROWS = NoRows()


def microseconds() -> dict[str, float]:
    """Of an operation of each scheme, reading ROWS rows: the median of some calls, all of a call's own work included."""
    pool, out = PagedPool(torch.zeros(ROWS // BLOCK_SIZE, BLOCK_SIZE, 1)), torch.zeros(ROWS, 1)
    table = list(range(pool.num_blocks))
    with IdleDevice() as device:
        stagers = {name: Stager(device, scheme=name) for name in SCHEMES}
        found: dict[str, list[float]] = {name: [] for name in SCHEMES}
        for _ in range(ROUNDS):
            for name, stager in stagers.items():
                began = time.perf_counter()
                stager.read(pool, table, 0, ROWS, out=out)
                found[name].append(time.perf_counter() - began)
    paged = PagedRows(table.__getitem__, pool.num_blocks, BLOCK_SIZE, 0, ROWS)
    return {name: statistics.median(seconds) * 1e6 / operations(name, paged) for name, seconds in found.items()}


def operations(name: str, rows: PagedRows) -> int:
    """How many a read of the library's scheme issues."""
    scheme = LIBRARY[name].read(rows)
    return sum(len(list(scheme.step(i))) for i in range(scheme.steps)) + len(scheme.epilogue)
