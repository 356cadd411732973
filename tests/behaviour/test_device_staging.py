"""Staging memory on the device: work under way may still use it, so a call may leave its wait only where a stream orders that."""

from collections.abc import Iterable, Iterator

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage.runtime.memory_budget import Buffers
from kvstage_model import schemes
from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import Event, Gather, Operation, RecordEvent, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import by_chunk
from kvstage_model.language.scheme import LOOP, Scheme
from kvstage_model.schemes.base import COMPUTE, STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

TABLE = [3, 0, 4, 1]
SIZE = 2


def everything(_stream: str, _index: int) -> bool:
    return True


def in_pieces_of(rows: int) -> Pair:
    return Pair(
        lambda each: schemes.gather_copy_read(by_chunk(each, rows)), lambda each: schemes.gather_copy_write(by_chunk(each, rows))
    )


@pytest.mark.parametrize("pair", [LIBRARY["gather_copy"], in_pieces_of(1), in_pieces_of(3)])
def test_calls_that_need_more_and_more_of_it_may_all_be_under_way(pair):
    """Nothing begins before the last wait: each kernel and copy must still find the memory that it was given."""
    blocks = random_blocks(1, 5, SIZE, (3,), torch.bfloat16)
    rows = random_rows(2, 5, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, 3, rows)
    before = [plain_read(blocks.tensor, TABLE, 0, stop) for stop in (1, 4, 8)]
    with ThreadDevice() as device, device.hold(everything):
        stager, pool = Stager(device, scheme=pair), PagedPool(blocks.tensor)
        reads = [stager.read(pool, TABLE, 0, stop) for stop in (1, 4, 8)]
        write = stager.write(pool, TABLE, 3, rows)
        assert device.waits == 0
        write.wait()
        assert device.waits == 1
        assert all(read.query() for read in reads)
    for read, expected in zip(reads, before, strict=True):
        assert same(read.result(), expected)
    assert torch.equal(blocks.base, after)


def two_streams(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The kernels of reads on a stream of their own, and every copy between events: within a call nothing can race."""
    for operation in operations:
        if isinstance(operation, Gather):
            yield WaitEvent(COMPUTE, Event("copied", 0))
            yield Gather(COMPUTE, operation.source, operation.target)
            yield RecordEvent(Event("packed", 0), COMPUTE)
        else:
            yield WaitEvent(STREAM, Event("packed", 0))
            yield operation
            yield RecordEvent(Event("copied", 0), STREAM)


def test_where_two_streams_use_it_the_call_makes_its_wait_itself():
    def read(rows: PagedRows) -> Scheme:
        return schemes.gather_copy_read(by_chunk(rows, 2)).changed(two_streams, "on two streams", LOOP)

    blocks = random_blocks(1, 5, SIZE, (3,), torch.bfloat16)
    with ThreadDevice() as device:
        transfer = Stager(device, scheme=Pair(read, LIBRARY["gather_copy"].write)).read(PagedPool(blocks.tensor), TABLE, 0, 5)
        assert (device.waits, transfer.stats.waits, transfer.stats.copies) == (1, 1, 3)
        assert transfer.query()
        assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 0, 5))


def test_device_memory_that_comes_back_is_given_to_nobody_else():
    with ThreadDevice() as device:
        buffers = Buffers(device, None)
        for memory, again in ((Memory.DEVICE, False), (Memory.PINNED, True)):
            loan = buffers.take(memory, 100)
            loan.give_back()
            assert (buffers.take(memory, 100).tensor is loan.tensor) == again


def test_twin_copies_that_find_their_memory_in_use_by_the_next_call_go_wrong():
    """Two schemes of one memory, on two streams: what would happen if that memory went from hand to hand."""
    blocks = random_blocks(1, 5, SIZE, (3,), torch.uint8)
    packed = torch.empty(4 * 3, dtype=torch.uint8)
    out = torch.zeros(4, 3, dtype=torch.uint8)
    with ThreadDevice() as device:
        pool = device.view(Memory.DEVICE, blocks.tensor)
        shared = device.view(Memory.DEVICE, packed.view(1, 4, 3))[0, 0:4]
        result = device.view(Memory.PINNED, out.view(1, 4, 3))[0, 0:4]
        first = torch.tensor([6, 7, 0, 1]).numpy()
        with device.hold(lambda stream, _: stream == STREAM):
            device.gather(COMPUTE, pool, first, shared)
            device.synchronize(COMPUTE)
            device.copy(STREAM, shared, result)
            device.gather(COMPUTE, pool, first + 2, shared)
            device.synchronize(COMPUTE)
            device.synchronize(STREAM)
    assert not same(out, blocks.tensor.reshape(-1, 3)[first])
