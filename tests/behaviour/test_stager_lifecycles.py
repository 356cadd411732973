"""Stagers through random lives on the checked device: calls waited for, released, cancelled, dropped, in batches and alone."""

import random
from collections import Counter
from typing import Any

import pytest
import torch

from kvstage import Batch, CheckedDevice, PagedPool, ReleasedMemoryError, Stager, StagingError, Transfer
from kvstage.runtime.pending import Pending
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.seeded import Seeded
from kvstage_model.schemes.registry import LIBRARY

LIVES = 80
ENDS = ("wait", "release", "cancel", "drop")


class Life:
    """Two pools, two stagers of different schemes, and the calls that nobody has ended yet."""

    def __init__(self, device: CheckedDevice, draw: random.Random) -> None:
        self.device = device
        self.draw = draw
        self.pools = [PagedPool(device.host_view(torch.zeros(8, 2, 3, dtype=torch.uint8), Memory.DEVICE)) for _ in range(2)]
        self.stagers = [Stager(device, scheme=scheme) for scheme in draw.sample(sorted(LIBRARY), 2)]
        self.live: list[Transfer[Any] | Batch] = []
        self.done = Counter[str]()

    def step(self) -> None:
        """One call, or the end of one. Before anything is written, the caller waits for all that may read it."""
        draw, stager = self.draw, self.draw.choice(self.stagers)
        kind = draw.choice(("read", "read", "batch", "write", "copy", *ENDS))
        start = draw.randint(0, 2)
        stop, table = draw.randint(start, 6), draw.sample(range(8), 3)
        self.done[kind] += 1
        if kind in ("write", "copy"):
            for call in self.live:
                call.wait()
        if kind == "read":
            self.live.append(stager.read(self.pools[0], table, start, stop))
        elif kind == "batch":
            with stager.batch() as batch:
                for _ in range(2):
                    batch.read(self.pools[0], table, start, stop)
            self.live.append(batch)
        elif kind == "write":
            rows = self.device.host_view(torch.ones(stop - start, 3, dtype=torch.uint8))
            stager.write(self.pools[0], table, start, rows).wait()
        elif kind == "copy":
            stager.copy(self.pools[0], table, self.pools[1], draw.sample(range(8), 3)).wait()
        elif self.live:
            self.end(kind, self.live.pop(draw.randrange(len(self.live))))

    def end(self, kind: str, call: Transfer[Any] | Batch) -> None:
        """The caller is done with a call, in one way or another."""
        if kind in ("wait", "release"):
            call.wait()
        if kind == "release":
            call.release()
        if kind == "cancel":
            call.cancel()


def live(number: int) -> tuple[StagingError | None, Counter[str]]:
    """What is found in one life, and what it did."""
    draw = random.Random(number)
    with CheckedDevice(Seeded(number, 0)) as device:
        life = Life(device, draw)
        for _ in range(draw.randint(3, 9)):
            life.step()
        return device.finish(), life.done


def test_the_library_keeps_all_memory_as_long_as_it_is_used() -> None:
    done = Counter[str]()
    for number in range(LIVES):
        found, did = live(number)
        assert found is None
        done += did
    assert min(done[kind] for kind in ("read", "batch", "write", "copy", *ENDS)) > LIVES // 4


def test_a_library_that_does_not_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(pending: Pending, *memory: torch.Tensor) -> None:
        MARK(pending)

    monkeypatch.setattr(Pending, "mark", forgets)
    kinds = Counter(type(live(number)[0]) for number in range(LIVES))
    assert kinds[ReleasedMemoryError] > 0
    assert set(kinds) == {type(None), ReleasedMemoryError}


MARK = Pending.mark
