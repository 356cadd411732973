"""Schemes that may return with copies under way on their staging memory: their rows are used on a stream, which comes behind."""

from collections.abc import Iterator

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.buffers import Memory
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import by_block
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.base import STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from kvstage_model.schemes.ring import ring_write
from kvstage_proofs.catalogue.between_calls import on_the_same_stream
from tests.support.plain import plain_write, random_blocks, random_rows, same

SIZE = 4
NARROW, WIDE = (16,), (64,)
ROWS = 2 * SIZE


def undrained(rows: PagedRows) -> Scheme:
    """`ring without a drain, used on its stream`, which is proved, of two slots."""
    return on_the_same_stream(ring_write(by_block(rows), 2))


UNDRAINED = Pair(LIBRARY["ring"].read, undrained)


def second(stream: str, index: int) -> bool:
    """The copy out of the second slot."""
    return index == 1


@pytest.fixture
def device() -> Iterator[ThreadDevice]:
    with ThreadDevice() as device:
        yield device


def wrote_right(device: ThreadDevice) -> bool:
    """A call whose second copy is late, then one with slots of another size: whether the rows of both are right."""
    narrow, wide = random_blocks(1, 5, SIZE, NARROW, torch.uint8), random_blocks(2, 5, SIZE, WIDE, torch.uint8)
    first, other = random_rows(3, ROWS, NARROW, torch.uint8), random_rows(4, SIZE, WIDE, torch.uint8)
    narrow_after = plain_write(narrow, [3, 1], 0, first)
    stager = Stager(device, scheme=UNDRAINED)
    stager.write(PagedPool(wide.tensor), [4], 0, other)  # so that the memory suffices from now on
    device.synchronize(STREAM)
    with device.hold(second):
        stager.write(PagedPool(narrow.tensor), [3, 1], 0, first)
        assert not same(narrow.tensor[1], first[SIZE:]), "its copy is held"
        stager.write(PagedPool(wide.tensor), [2], 0, other)
    device.synchronize(STREAM)
    return torch.equal(narrow.base, narrow_after) and all(same(wide.tensor[block], other) for block in (4, 2))


def test_memory_is_laid_out_anew_behind_what_is_under_way(device):
    assert wrote_right(device)


def test_twin_at_once_it_would_be_under_a_copy(device, monkeypatch):
    monkeypatch.setattr(Runtime, "quiet", lambda runtime: None)
    assert not wrote_right(device)


def test_that_wait_is_counted(device):
    narrow, wide = (PagedPool(random_blocks(1, 5, SIZE, row, torch.uint8).tensor) for row in (NARROW, WIDE))
    stager = Stager(device, scheme=UNDRAINED)
    waits = [
        stager.write(pool, [3, 1], 0, torch.zeros(ROWS, *row, dtype=torch.uint8)).stats.waits
        for pool, row in ((narrow, NARROW), (narrow, NARROW), (wide, WIDE))
    ]
    assert waits == [2, 2, 3]
    stager.close()
    assert device.waits == 8, "and the last one"


@pytest.mark.parametrize("waits", [True, False])
def test_pinned_memory_that_goes_back_is_waited_for_first(device, monkeypatch, waits):
    """A read needs what the write has left in use; its twin takes it at once."""
    if not waits:
        monkeypatch.setattr(Runtime, "quiet", lambda runtime: None)
    blocks = random_blocks(1, 5, SIZE, WIDE, torch.uint8)
    rows = random_rows(2, ROWS, WIDE, torch.uint8)
    expected = plain_write(blocks, [3, 1], 0, rows)
    stager = Stager(device, scheme=UNDRAINED, slots=2, pinned_bytes=2 * SIZE * 64)
    with device.hold(second):
        stager.write(PagedPool(blocks.tensor), [3, 1], 0, rows)
        before = device.waits
        stager._calls._buffers.take(Memory.PINNED, 2 * SIZE * 64).tensor.fill_(7)  # as any call does that needs it
        assert device.waits - before == waits
    device.synchronize(STREAM)
    assert torch.equal(blocks.base, expected) == waits
