"""A budget of pinned memory: what lies idle makes way, and "auto" runs what there is room for."""

import pytest
import torch

from kvstage import HostDevice, PagedPool, PinnedMemoryError, Stager, ThreadDevice
from kvstage.costs import PCIE_5
from kvstage.runtime.memory_budget import Buffers
from kvstage.runtime.staging_memory import Staging
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

TABLE = [3, 0, 4, 1]
TIGHT = 20_000
"""Bytes: room for one ring of four slots of 32 rows of 128 bytes, and not for two."""
EMPTY: dict = {}


@pytest.fixture
def blocks():
    return random_blocks(1, 6, 32, (128,), torch.uint8)


def in_turn(device, scheme: str, blocks, pinned_bytes: int) -> None:
    """A write, a read, and a write of longer rows; each has staging of its own or needs more than before."""
    pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme, slots=4, pinned_bytes=pinned_bytes)
    for turn in range(3):
        rows = random_rows(turn, 128, (128,), torch.uint8)
        expected = plain_write(blocks, TABLE, 0, rows)
        stager.write(pool, TABLE, 0, rows).wait()
        assert same(blocks.base, expected)
        read = stager.read(pool, TABLE, 1, 128)
        read.wait()
        assert same(read.result(), rows[1:])
    assert stager._calls._buffers.pinned <= pinned_bytes


@pytest.mark.parametrize("make", [HostDevice, ThreadDevice])
def test_staging_of_the_other_direction_makes_way(blocks, make):
    with make() as device:
        in_turn(device, "ring", blocks, TIGHT)


def test_twin_staging_that_is_never_recalled_is_in_the_way(blocks, monkeypatch):
    monkeypatch.setattr(Staging, "_recall", lambda self: None)
    with ThreadDevice() as device, pytest.raises(PinnedMemoryError) as refused:
        in_turn(device, "ring", blocks, TIGHT)
    assert (refused.value.asked, refused.value.left) == (16_384, TIGHT - 16_384)


def test_staging_that_is_too_small_makes_way_for_more(blocks):
    """Of one scheme, where there is no room for both."""
    narrow, wide = (PagedPool(random_blocks(1, 6, 32, (width,), torch.uint8).tensor) for width in (100, 128))
    with ThreadDevice() as device:
        stager = Stager(device, scheme="ring", slots=4, pinned_bytes=TIGHT)
        for pool in (narrow, wide):
            read = stager.read(pool, TABLE, 0, 128)
            read.wait()
            assert same(read.result(), plain_read(pool.tensor, TABLE, 0, 128))


def test_what_is_left_counts_what_is_idle():
    with ThreadDevice() as device:
        buffers = Buffers(device, 1000)
        staging = Staging(buffers, lambda: None)
        assert Buffers(device, None).left is None
        assert buffers.left == 1000
        staging.take("ring", Buffer("stage", Memory.PINNED, 3, 10), 10)
        loan = buffers.take(Memory.PINNED, 100)
        other = buffers.take(Memory.PINNED, 50)
        assert buffers.left == 850
        loan.give_back()
        assert buffers.left == 950
        assert buffers.pinned == 450
        del other
        assert buffers.left == 1000


def refuses(scheme: str, pool: PagedPool, budget: int, held: int, out: torch.Tensor | None) -> str | None:
    """None where there is no room for the scheme, or what has run."""
    with ThreadDevice() as device:
        costs = {"costs": PCIE_5} if scheme == "auto" else EMPTY
        stager = Stager(device, scheme=scheme, pinned_bytes=budget, **costs)
        keep = [stager._calls._buffers.take(Memory.PINNED, held)] if held else []
        try:
            read = stager.read(pool, TABLE, 0, 100, out=out)
        except PinnedMemoryError:
            return None
        read.wait()
        assert same(read.result(), plain_read(pool.tensor, TABLE, 0, 100))
        assert len(keep) == (held > 0)
        assert stager._calls._buffers.pinned <= budget
        return scheme if read.choice is None else read.choice.scheme


@pytest.mark.parametrize("budget", [100, 127, 128, 4000, 4096, 12_800, 16_383, 16_384, 17_000, 300_000, 2_000_000])
@pytest.mark.parametrize("held", [0, 100])
@pytest.mark.parametrize("has_out", [True, False])
def test_auto_runs_whenever_there_is_room_for_some_scheme(blocks, budget, held, has_out):
    pool = PagedPool(blocks.tensor)
    out = torch.zeros(100, 128, dtype=torch.uint8) if has_out else None
    without_host_kernels = sorted(LIBRARY.keys() - {"gather_host"})
    fit = {name for name in without_host_kernels if refuses(name, pool, budget, held, out)}
    picked = refuses("auto", pool, budget, held, out)
    assert picked in fit if fit else picked is None


def test_auto_says_what_it_left_out():
    pool, table = PagedPool(torch.zeros(64, 32, 512, dtype=torch.uint8)), list(range(20))
    with ThreadDevice() as device:
        stager = Stager(device, costs=PCIE_5, pinned_bytes=70_000)
        choice = stager.choice(pool, table, 0, 640)
        read = stager.read(pool, table, 0, 640)
        assert read.choice == choice
        assert choice.scheme == "ring"
        assert "70000 bytes are left, and " in choice.why
        assert all(f"{name} takes 327680" in choice.why for name in ("direct", "gather_pinned"))
        assert "left" not in Stager(device, costs=PCIE_5).choice(pool, table, 0, 640).why


def test_twin_auto_that_does_not_look_at_the_budget_is_refused(monkeypatch):
    monkeypatch.setattr(Buffers, "left", None)
    pool = PagedPool(torch.zeros(64, 32, 512, dtype=torch.uint8))
    with ThreadDevice() as device, pytest.raises(PinnedMemoryError):
        Stager(device, costs=PCIE_5, pinned_bytes=70_000).read(pool, range(20), 0, 640)
