"""What a caller does with a stager on a simulated device, and whether every byte is then what the definition says.

Each takes a schedule, and says whether all was right: when a call had returned, and when everything had ended.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch

from kvstage import PagedPool, SimDevice, Stager, Transfer
from kvstage_model import schemes
from kvstage_model.language.buffers import Memory
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import Copy, Operation, SyncStream
from kvstage_model.language.partitions import by_chunk
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.schemes.base import STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.broken import changed, without
from tests.support.plain import Blocks, plain_read, plain_write, random_blocks, random_rows, same

START, STOP = 1, 6
TABLES = [3, 0, 4], [1, 5, 2]
"""Rows [1, 6) of blocks of two: three blocks of each of two pools, the first by half."""


def ring(slots: int) -> Pair:
    return Pair(lambda rows: LIBRARY["ring"].read(rows, slots), lambda rows: LIBRARY["ring"].write(rows, slots))


def gather(device_slots: int, pinned_slots: int) -> Pair:
    return Pair(
        lambda rows: schemes.gather_read(by_chunk(rows, 2), device_slots, pinned_slots),
        lambda rows: schemes.gather_write(by_chunk(rows, 2), device_slots, pinned_slots),
    )


def gather_copy(chunk: int) -> Pair:
    return Pair(
        lambda rows: schemes.gather_copy_read(by_chunk(rows, chunk)), lambda rows: schemes.gather_copy_write(by_chunk(rows, chunk))
    )


def pools() -> list[Blocks]:
    return [random_blocks(seed, 6, 2, (4,), torch.uint8, padding=3) for seed in (1, 2)]


def moved() -> list[torch.Tensor]:
    return [random_rows(seed, STOP - START, (4,), torch.uint8) for seed in (3, 4)]


def finish(transfer: Transfer, *, poll: bool) -> None:
    if poll:
        while not transfer.query():
            pass
    else:
        transfer.wait()


def writes(scheme: str | Pair, schedule: Schedule, *, poll: bool = False) -> bool:
    """Two writes, one behind the other; as soon as each has returned the caller looks at the pool, and overwrites his rows."""
    right = []
    with SimDevice(schedule) as device:
        stager = Stager(device, scheme=scheme)
        expected = [plain_write(blocks, table, START, rows) for blocks, table, rows in zip(pools(), TABLES, moved(), strict=True)]
        filled = pools()
        for blocks, table, rows, after in zip(filled, TABLES, moved(), expected, strict=True):
            finish(stager.write(PagedPool(blocks.tensor), table, START, rows), poll=poll)
            device.host(lambda blocks=blocks, after=after: right.append(same(blocks.base, after)), "the caller looks at the pool")
            device.host(lambda rows=rows: rows.fill_(0x55), "the caller overwrites his rows")
    return all(right) and all(same(blocks.base, after) for blocks, after in zip(filled, expected, strict=True))


def reads(scheme: str | Pair, schedule: Schedule, *, poll: bool = False) -> bool:
    """Two reads, one behind the other; as soon as each has returned the caller takes the rows, and overwrites the pool."""
    right, results = [], []
    with SimDevice(schedule) as device:
        stager = Stager(device, scheme=scheme)
        expected = [plain_read(blocks.tensor, table, START, STOP) for blocks, table in zip(pools(), TABLES, strict=True)]
        for blocks, table, rows in zip(pools(), TABLES, expected, strict=True):
            transfer = stager.read(PagedPool(blocks.tensor), table, START, STOP)
            finish(transfer, poll=poll)
            results.append(transfer.result())
            device.host(lambda rows=rows: right.append(same(results[-1], rows)), "the caller takes the rows")
            device.host(lambda blocks=blocks: blocks.base.fill_(0x55), "the caller overwrites the pool")
    return all(right) and all(same(result, rows) for result, rows in zip(results, expected, strict=True))


def two_under_way(scheme: str, schedule: Schedule) -> bool:
    """Two reads at once, waited for in turn."""
    right = []
    with SimDevice(schedule) as device:
        stager, filled = Stager(device, scheme=scheme), pools()
        transfers = [
            stager.read(PagedPool(blocks.tensor), table, START, STOP) for blocks, table in zip(filled, TABLES, strict=True)
        ]
        for transfer, blocks, table in zip(transfers, filled, TABLES, strict=True):
            transfer.wait()
            rows = plain_read(blocks.tensor, table, START, STOP)
            device.host(
                lambda transfer=transfer, rows=rows: right.append(same(transfer.result(), rows)), "the caller takes the rows"
            )
    return all(right)


def on_stream(stream: str) -> Pair:
    """Direct copies on a stream of that name."""

    def moved(operations: Iterable[Operation]) -> Iterator[Operation]:
        return (replace(each, stream=stream) if isinstance(each, Copy | SyncStream) else each for each in operations)

    return changed(LIBRARY["direct"], lambda scheme: scheme.changed(moved, f"direct on {stream}"))


def two_streams_under_way(schedule: Schedule) -> bool:
    """Two reads at once, each on a stream of its own, waited for in turn."""
    right = []
    with SimDevice(schedule) as device:
        filled, streams = pools(), ("first", "second")
        transfers = [
            Stager(device, scheme=on_stream(stream)).read(PagedPool(blocks.tensor), table, START, STOP)
            for stream, blocks, table in zip(streams, filled, TABLES, strict=True)
        ]
        for transfer, blocks, table in zip(transfers, filled, TABLES, strict=True):
            transfer.wait()
            rows = plain_read(blocks.tensor, table, START, STOP)
            device.host(
                lambda transfer=transfer, rows=rows: right.append(same(transfer.result(), rows)), "the caller takes the rows"
            )
    return right == [True, True]


def across_streams(schedule: Schedule) -> bool:
    """A write, and a read of its rows that goes by another stream, with no wait between them."""
    with SimDevice(schedule) as device:
        blocks, rows = pools()[0], random_rows(7, STOP - START, (4,), torch.uint8)
        stager, pool = Stager(device, scheme=Pair(on_stream("second").read, on_stream("first").write)), PagedPool(blocks.tensor)
        write = stager.write(pool, TABLES[0], START, rows)
        read = stager.read(pool, TABLES[0], START, STOP)
        write.wait()
        read.wait()
        found = []
        device.host(lambda: found.append(read.result().clone()), "the caller takes the rows")
    return same(found[0], rows)


def behind_the_caller(scheme: str, schedule: Schedule) -> bool:
    """The pool is filled on the caller's stream, and read behind that."""
    with SimDevice(schedule) as device:
        blocks, target = pools()[0], torch.zeros(6, 2, 4, dtype=torch.uint8)
        handles = [device.view(Memory.DEVICE, tensor) for tensor in (blocks.tensor, target)]
        for block in TABLES[0]:
            device.copy("caller", handles[0][block, 0:2], handles[1][block, 0:2])
        read = Stager(device, scheme=scheme).read(PagedPool(target), TABLES[0], START, STOP, after="caller")
        read.wait()
        found = []
        device.host(lambda: found.append(read.result().clone()), "the caller takes the rows")
    return same(found[0], plain_read(blocks.tensor, TABLES[0], START, STOP))


def before_the_caller(scheme: str, schedule: Schedule) -> bool:
    """The rows are used on the caller's stream, which waits for the transfer; the host waits for that stream alone."""
    with SimDevice(schedule) as device:
        blocks, out = pools()[0], torch.zeros(STOP - START, 4, dtype=torch.uint8)
        taken = torch.zeros_like(out)
        Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), TABLES[0], START, STOP, out=out).wait_stream("caller")
        source, target = (device.view(Memory.PINNED, tensor.unsqueeze(0)) for tensor in (out, taken))
        device.copy("caller", source[0, 0 : len(out)], target[0, 0 : len(out)])
        device.synchronize("caller")
        found = []
        device.host(lambda: found.append(taken.clone()), "the caller takes the rows")
    return same(found[0], plain_read(blocks.tensor, TABLES[0], START, STOP))


def undrained(slots: int, schedule: Schedule) -> bool:
    """Writes through a ring without its last wait: the events of one call keep the next one from its slots."""
    with SimDevice(schedule) as device:
        stager, filled = Stager(device, scheme=without(ring(slots), Named(SyncStream))), pools()
        expected = [plain_write(blocks, table, START, rows) for blocks, table, rows in zip(filled, TABLES, moved(), strict=True)]
        kept = moved()
        for blocks, table, rows in zip(filled, TABLES, kept, strict=True):
            stager.write(PagedPool(blocks.tensor), table, START, rows)
        device.synchronize(STREAM)
    return all(same(blocks.base, after) for blocks, after in zip(filled, expected, strict=True))


class Failing(SimDevice):
    """Its second copy is refused."""

    refused = False

    def copy(self, stream, source, target):
        if self.copies == 1 and not self.refused:
            self.refused = True
            raise MemoryError("no copy today")
        super().copy(stream, source, target)


def behind_a_call_that_broke_off(schedule: Schedule) -> bool:
    """A ring's copy is still under way when its call fails: the next call must not share memory with it."""
    right = []
    with Failing(schedule) as device:
        stager, filled = Stager(device, scheme=ring(2)), pools()
        try:
            stager.read(PagedPool(filled[0].tensor), TABLES[0], START, STOP)
        except MemoryError:
            rows = moved()[1]
            after = plain_write(filled[1], TABLES[1], START, rows)
            stager.write(PagedPool(filled[1].tensor), TABLES[1], START, rows).wait()
            device.host(lambda: right.append(same(filled[1].base, after)), "the caller looks at the pool")
    return right == [True]


SCHEMES: dict[str, str | Pair] = {
    "staged": LIBRARY["per_block"],
    "ring(1)": ring(1),
    "ring(2)": ring(2),
    "direct": LIBRARY["direct"],
    "gather_pinned": LIBRARY["gather_pinned"],
    "gather_host": LIBRARY["gather_host"],
    "gather_copy, 2 a slot": gather_copy(2),
    "gather(1, 1)": gather(1, 1),
    "gather(1, 2)": gather(1, 2),
    "gather(2, 1)": gather(2, 1),
    "gather(2, 2)": gather(2, 2),
}


def one_call(name: str, direction: str, blocks: int, schedule: Schedule) -> bool:
    """One call of so many blocks: whether the rows are right when it has returned, and nothing beside them is touched."""
    pool, table, count = random_blocks(1, 5, 2, (4,), torch.uint8), TABLES[0][:blocks], 2 * blocks
    rows, right = random_rows(2, count, (4,), torch.uint8), []
    read, written = plain_read(pool.tensor, table, 0, count), plain_write(pool, table, 0, rows)
    with SimDevice(schedule) as device:
        stager = Stager(device, scheme=SCHEMES[name])
        if direction == "read":
            transfer = stager.read(PagedPool(pool.tensor), table, 0, count)
            transfer.wait()
            result = transfer.result()
            device.host(lambda: right.append(same(result, read)), "the caller takes the rows")
        else:
            stager.write(PagedPool(pool.tensor), table, 0, rows).wait()
            device.host(lambda: right.append(same(pool.base, written)), "the caller looks at the pool")
    return right == [True]


RUNS: dict[str, Callable[[Schedule], bool]] = {
    **{f"read {name}": partial(reads, scheme) for name, scheme in SCHEMES.items()},
    **{f"write {name}": partial(writes, scheme) for name, scheme in SCHEMES.items()},
    "read direct, polled": partial(reads, SCHEMES["direct"], poll=True),
    "write direct, polled": partial(writes, SCHEMES["direct"], poll=True),
    "two under way": partial(two_under_way, "gather_pinned"),
    "two streams under way": two_streams_under_way,
    "across streams": across_streams,
    "behind the caller": partial(behind_the_caller, "direct"),
    "before the caller": partial(before_the_caller, "direct"),
    "undrained": partial(undrained, 2),
    "broken off": behind_a_call_that_broke_off,
}
"""By the names that mutants call them."""
