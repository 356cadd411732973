"""A call leaves nothing to Python's collector of cycles: its memory is free as soon as nobody names it."""

import gc
from collections.abc import Iterator

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage.runtime.performer import Performer
from kvstage_model.schemes.registry import LIBRARY


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what is there already need not be looked through again
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def left_by_a_call(scheme: str) -> int:
    """Objects that only the collector can free, behind one read and one write."""
    pool, table = PagedPool(torch.zeros(4, 8, 2)), [2, 0, 1]
    with ThreadDevice() as device, Stager(device, scheme=scheme) as stager:
        stager.write(pool, table, 0, torch.ones(20, 2)).wait()
        gc.collect()
        read = stager.read(pool, table, 0, 20)
        read.wait()
        stager.write(pool, table, 0, read.result()).wait()
        del read
        return gc.collect()


@pytest.mark.parametrize("scheme", [name for name in LIBRARY if name != "gather_host"])
@pytest.mark.usefixtures("no_collector")
def test_a_call_leaves_no_cycle(scheme: str) -> None:
    assert left_by_a_call(scheme) == 0


@pytest.mark.usefixtures("no_collector")
def test_a_cycle_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    perform = Performer.perform

    def performed(self: Performer, operations: object) -> None:
        self.itself = self  # type: ignore[attr-defined]
        perform(self, operations)  # type: ignore[arg-type]

    monkeypatch.setattr(Performer, "perform", performed)
    assert left_by_a_call("per_block") > 0
