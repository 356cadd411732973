"""How the runtime performs kernels and events: which rows, which events, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kvstage import PagedPool, SchemeError, Stager, Stats, ThreadDevice
from kvstage.arguments.block_table import TouchedBlocks, touched_blocks
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage_model.language.operations import Acquire, Copy, CopyBatch, Event, Gather, Launch, QueryEvent, Release, SyncStream
from kvstage_model.schemes.base import STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.broken import changed
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

POOL = PagedPool(torch.zeros(6, 4, 3))


def with_kernel(change) -> Pair:
    """The scheme gather_pinned with its kernel changed."""
    return changed(
        LIBRARY["gather_pinned"],
        lambda scheme: replace(scheme, step=lambda i: [change(operation) for operation in scheme.step(i)]),
    )


def paged(operation, **fields):
    """A kernel whose paged side is changed."""
    side = "source" if isinstance(operation, Gather) else "target"
    return replace(operation, **{side: replace(getattr(operation, side), **fields)})


class Elsewhere:
    """Says of every row that it lies where it doesn't."""

    def __init__(self, slot: int, row: int) -> None:
        self.slot, self.row = slot, row

    def address(self, position):
        return np.full(len(position), self.slot), np.full(len(position), self.row)


REFUSED = [
    (lambda kernel: paged(kernel, count=9), "of 9 rows to 8 rows|of 8 rows to 9 rows"),
    (lambda kernel: paged(kernel, first=1), r"of rows \[1, 9\) of a transfer of 8"),
    (lambda kernel: paged(kernel, first=-1), r"of rows \[-1, 7\) of a transfer of 8"),
    (lambda kernel: paged(kernel, rows=Elsewhere(6, 0)), "rows that 'pool' does not have"),
    (lambda kernel: paged(kernel, rows=Elsewhere(-1, 0)), "rows that 'pool' does not have"),
    (lambda kernel: paged(kernel, rows=Elsewhere(0, 4)), "rows that 'pool' does not have"),
    (lambda kernel: paged(kernel, rows=Elsewhere(1, -1)), "rows that 'pool' does not have"),
    (lambda kernel: Launch(STREAM), "can't perform Launch"),
    (lambda kernel: QueryEvent(Event("sent"), 1), "can't perform QueryEvent"),
    (lambda kernel: Release(kernel.target), "can't perform Release"),
    (lambda kernel: Acquire(kernel.target), "can't perform Acquire"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED)
def test_a_kernel_that_is_not_sound_is_refused_and_nothing_is_launched(device, change, says):
    launches = device.launches
    stager = Stager(device, scheme=with_kernel(change))
    with pytest.raises(SchemeError, match=says):
        stager.read(POOL, [5, 1], 0, 8)
    with pytest.raises(SchemeError, match=says):
        stager.write(POOL, [5, 1], 0, torch.ones(8, 3))
    assert device.launches == launches
    assert not POOL.tensor.any()


def test_twin_the_unchanged_kernel_is_launched(device):
    launches, pool = device.launches, PagedPool(torch.ones(6, 4, 3))
    read = Stager(device, scheme=with_kernel(lambda kernel: kernel)).read(pool, [5, 1], 0, 8)
    read.wait()
    assert device.launches == launches + 1
    assert same(read.result(), torch.ones(8, 3))


def test_a_table_read_with_an_array_gives_what_it_gives_one_by_one():
    blocks = touched_blocks(POOL, [-1, 5, 0, 3, -1], 5, 15, distinct=True)
    assert blocks(np.array([1, 3, 2, 1])).tolist() == [blocks(k) for k in (1, 3, 2, 1)] == [5, 3, 0, 5]


def test_a_table_names_no_block_that_the_rows_do_not_touch():
    blocks = touched_blocks(POOL, [4, 5, 0, 3, 1], 5, 15, distinct=True)
    for outside in (0, 4):
        with pytest.raises(KeyError):
            blocks(outside)
        with pytest.raises(IndexError):
            blocks(np.array([1, outside]))


def test_twin_an_index_before_the_first_would_count_from_the_end():
    blocks: TouchedBlocks = touched_blocks(POOL, [4, 5, 0, 3, 1], 5, 15, distinct=True)
    assert blocks.ids[np.array([0]) - blocks.first].tolist() == [3]


class Watched(ThreadDevice):
    """Remembers the events that were made, and all records and waits by event, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.made = []
        self.asked = []

    def event(self):
        self.made.append(super().event())
        return self.made[-1]

    def record(self, event, stream):
        self.asked.append(("record", self.made.index(event)))
        super().record(event, stream)

    def wait(self, event):
        self.asked.append(("wait", self.made.index(event)))
        super().wait(event)


@pytest.mark.parametrize("fresh", [False, True])
def test_events_outlive_a_call_unless_each_call_makes_its_own(fresh):
    pair = changed(LIBRARY["ring"], lambda scheme: replace(scheme, fresh_events=fresh))
    blocks, rows = random_blocks(1, 6, 2, (3,), torch.uint8), random_rows(2, 6, (3,), torch.uint8)
    after = plain_write(blocks, [3, 0, 4], 0, rows)
    with Watched() as device:
        stager = Stager(device, scheme=pair, slots=2)
        for _ in range(2):
            stager.write(PagedPool(blocks.tensor), [3, 0, 4], 0, rows).wait()
        call = [("wait", 0), ("record", 0), ("wait", 1), ("record", 1), ("wait", 0), ("record", 0)]
        second = [(kind, number + 2) for kind, number in call] if fresh else call
        assert device.asked == call + second
        assert len(device.made) == (4 if fresh else 2)
    assert torch.equal(blocks.base, after)


def test_the_two_directions_share_no_event_and_no_staging_memory():
    """A family of events is recorded on one stream in a read, on another one in a write."""
    blocks = random_blocks(1, 6, 2, (3,), torch.uint8)
    with Watched() as device:
        stager = Stager(device, scheme="gather", slots=1)
        stager.write(PagedPool(blocks.tensor), [3, 0], 0, random_rows(2, 4, (3,), torch.uint8))
        made = len(device.made)
        read = stager.read(PagedPool(blocks.tensor), [3, 0], 0, 4)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, [3, 0], 0, 4))
        assert (made, len(device.made)) == (2, 5)
        memory = stager._calls._runtime._staging._kept
        assert len({loan.tensor.data_ptr() for loan, _ in memory.values()}) == len(memory) == 4


def test_the_prologue_comes_first_and_once(device):
    blocks = random_blocks(1, 6, 2, (3,), torch.uint8)
    pair = changed(LIBRARY["per_block"], lambda scheme: replace(scheme, prologue=(SyncStream(STREAM), SyncStream("other"))))
    seen = []

    class Ordered(ThreadDevice):
        def synchronize(self, stream):
            seen.append(stream)
            super().synchronize(stream)

        def copy(self, stream, source, target):
            seen.append(Copy)
            super().copy(stream, source, target)

    with Ordered() as ordered:
        read = Stager(ordered, scheme=pair).read(PagedPool(blocks.tensor), [3, 0], 0, 4)
        read.wait()
    mine, other = OWN_STREAMS[STREAM], OWN_STREAMS["other"]
    assert seen == [mine, other, Copy, mine, Copy, mine]
    assert same(read.result(), plain_read(blocks.tensor, [3, 0], 0, 4))
    assert read.stats.waits == 4


@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_batch_of_copies_is_each_of_its_copies(device, direction):
    def batched(scheme):
        copies = [operation for i in range(scheme.steps) for operation in scheme.step(i)]
        batch = CopyBatch(STREAM, tuple((copy.source, copy.target) for copy in copies))
        return replace(scheme, steps=1, step=lambda _: [batch])

    blocks, rows = random_blocks(1, 6, 2, (3,), torch.uint8), random_rows(2, 5, (3,), torch.uint8)
    stager, pool = Stager(device, scheme=changed(LIBRARY["direct"], batched)), PagedPool(blocks.tensor)
    if direction == "read":
        transfer = stager.read(pool, [3, 0, 4], 1, 6)
        transfer.wait()
        assert same(transfer.result(), plain_read(blocks.tensor, [3, 0, 4], 1, 6))
    else:
        after = plain_write(blocks, [3, 0, 4], 1, rows)
        transfer = stager.write(pool, [3, 0, 4], 1, rows)
        transfer.wait()
        assert same(blocks.base, after)
    assert transfer.stats == Stats(copies=3, waits=1, bytes=15)


def test_only_a_lone_last_wait_of_a_scheme_without_staging_memory_is_left_to_the_caller(device):
    """Its staging memory is the next call's too, and a wait in the middle is not the last."""
    two_waits = changed(LIBRARY["direct"], lambda scheme: replace(scheme, epilogue=scheme.epilogue * 2))
    for scheme, left in [("direct", True), ("gather_pinned", True), ("ring", False), ("gather", False), (two_waits, False)]:
        stager = Stager(device, scheme=scheme)
        transfer = stager.write(PagedPool(torch.zeros(6, 4, 3)), [5, 1], 0, torch.ones(8, 3))
        assert (transfer._pending is not None) == left
        transfer.wait()
