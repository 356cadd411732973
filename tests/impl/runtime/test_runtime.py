"""The runtime: what it binds, refuses, keeps and forgets."""

from contextlib import nullcontext
from dataclasses import replace
from threading import Barrier, Thread, current_thread

import pytest
import torch

from kvstage import PagedPool, SchemeError, Stager, ThreadDevice
from kvstage.runtime.memory_budget import Buffers
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostCopy, HostRead, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.schemes.base import STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.allocations import CountingDevice
from tests.support.broken import edited
from tests.support.plain import plain_read, random_blocks, random_rows, same


def with_step(step):
    return edited("per_block", step)


def longer_target(operations):
    return [replace(op, target=replace(op.target, count=op.target.count + 1)) if isinstance(op, Copy) else op for op in operations]


def beyond_the_slot(operations):
    shift = {Copy: "target", HostCopy: "source"}
    return [
        replace(op, **{shift[type(op)]: replace(getattr(op, shift[type(op)]), start=3)}) if type(op) in shift else op
        for op in operations
    ]


def wrong_slot(operations):
    return [replace(op, source=replace(op.source, slot=-1)) if isinstance(op, Copy) else op for op in operations]


def with_a_host_read(operations):
    return [HostRead(operations[0].source)]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (longer_target, "Copy of 4 rows to 5 rows"),
        (beyond_the_slot, r"rows \[3, 7\) of slot 0 are not inside 'stage', 1 slots of 4 rows"),
        (wrong_slot, "slot -1 are not inside 'pool'"),
        (with_a_host_read, "HostRead"),
    ],
)
def test_a_scheme_that_is_not_sound_is_refused_by_name(device, edit, says):
    blocks, out = random_blocks(1, 6, 4, (3,), torch.bfloat16), random_rows(2, 8, (3,), torch.bfloat16)
    kept = out.clone()
    with pytest.raises(SchemeError, match=says):
        Stager(device, scheme=with_step(edit)).read(PagedPool(blocks.tensor), [5, 1], 0, 8, out=out)
    assert same(out, kept)


def test_a_scheme_must_say_what_is_the_callers_and_fit_it(device):
    pool = PagedPool(torch.zeros(2, 4, 3))
    nameless = Pair(lambda rows: replace(LIBRARY["per_block"].read(rows), result=None), LIBRARY["per_block"].write)
    with pytest.raises(SchemeError, match="states no result"):
        Stager(device, scheme=nameless).read(pool, [0], 0, 4)
    shorter = Pair(lambda rows: LIBRARY["per_block"].read(replace(rows, stop=rows.stop - 1)), LIBRARY["per_block"].write)
    with pytest.raises(SchemeError, match="1 slots of 3 rows in 'out', and the caller's has 1 of 4"):
        Stager(device, scheme=shorter).read(pool, [0], 0, 4)


@pytest.mark.parametrize("padding", [0, 2])
def test_a_scheme_sees_a_pool_as_one_slot_only_where_no_bytes_lie_between_its_blocks(device, padding):
    blocks = random_blocks(1, 6, 4, (3,), torch.bfloat16, padding)
    across = Pair(lambda rows: LIBRARY["per_run"].read(rows, 8), LIBRARY["per_run"].write)
    stager, pool, table = Stager(device, scheme=across), PagedPool(blocks.tensor), [4, 2, 3]
    if padding:
        with pytest.raises(SchemeError, match="1 slots of 24 rows in 'pool', and the caller's has 6 of 4"):
            stager.read(pool, table, 1, 12)
    else:
        read = stager.read(pool, table, 1, 12)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, table, 1, 12))
        assert read.stats.copies == 2


def test_the_epilogue_runs_once_behind_the_steps(device):
    def one_wait_at_the_end(rows: PagedRows):
        scheme = LIBRARY["per_block"].read(rows)
        return replace(scheme, epilogue=(SyncStream(STREAM),))

    read = Stager(device, scheme=Pair(one_wait_at_the_end, LIBRARY["per_block"].write)).read(
        PagedPool(torch.zeros(3, 4, 3)), [0, 1], 0, 8
    )
    assert (read.stats.copies, read.stats.waits) == (2, 3)


def test_staging_memory_is_kept_and_grows_only():
    with CountingDevice() as device:
        stager = Stager(device, scheme="per_block")
        for size, width in [(4, 3), (4, 3), (2, 3), (4, 5), (2, 9), (4, 5)]:
            blocks = random_blocks(width, 3, size, (width,), torch.uint8)
            read = stager.read(PagedPool(blocks.tensor), [2, 0], 0, 2 * size)
            read.wait()
            assert same(read.result(), plain_read(blocks.tensor, [2, 0], 0, 2 * size))
        staging = [each for each in device.allocated if each[0] is not Memory.PAGEABLE]  # where results lie
        assert staging == [(Memory.PINNED, 12), (Memory.PINNED, 20)]


class Interrupted(ThreadDevice):
    """Its first wait is interrupted from the keyboard."""

    def synchronize(self, stream):
        if not self.waits:
            self.waits += 1
            raise KeyboardInterrupt
        super().synchronize(stream)


@pytest.mark.parametrize("keeps", [True, False])
def test_an_interrupted_call_leaves_no_staging_memory_to_the_next(monkeypatch, keeps):
    """Its copy may still be under way, and would read the next call's rows."""
    if not keeps:
        monkeypatch.setattr(Runtime, "_break_off", lambda *_: None)
    pool, rows = PagedPool(torch.zeros(2, 4, 3)), torch.arange(24.0).view(2, 4, 3)
    with Interrupted() as device:
        stager = Stager(device, scheme="per_block")
        with device.hold(lambda _stream, index: index == 0):
            with pytest.raises(KeyboardInterrupt):
                stager.write(pool, [0], 0, rows[0])
            write = stager.write(pool, [1], 0, rows[1])
            assert write.stats.waits == (2 if keeps else 1), "one for what the interrupted call left"
    assert same(pool.tensor[1], rows[1])
    assert same(pool.tensor[0], rows[0] if keeps else rows[1])


class Recording(ThreadDevice):
    """Remembers which thread asked for what; may let two threads wait only together."""

    def __init__(self, together: Barrier | None) -> None:
        super().__init__()
        self.threads: list[str] = []
        self.together = together

    def copy(self, stream, source, target):
        self.threads.append(current_thread().name)
        super().copy(stream, source, target)

    def synchronize(self, stream):
        if self.together:
            self.together.wait(timeout=20)
        super().synchronize(stream)

    def host_copy(self, source, target):
        if self.together:
            self.together.wait(timeout=20)
        super().host_copy(source, target)


@pytest.mark.parametrize("locked", [True, False])
def test_calls_from_two_threads_go_one_by_one(locked, watch):
    blocks = random_blocks(1, 64, 1, (3,), torch.uint8)
    pool, outs = PagedPool(blocks.tensor), [torch.zeros(32 if locked else 1, 3, dtype=torch.uint8) for _ in range(2)]
    with Recording(None if locked else Barrier(2)) as device:
        stager = Stager(device, scheme="per_block")
        stage = stager._calls._buffers.take(Memory.PINNED, 3)
        stager._calls._runtime._staging._kept["staged read", "stage", Memory.PINNED] = stage, (1, 1, 3)
        if not locked:
            stager._calls._lock = nullcontext()
        count = len(outs[0])
        started = Barrier(2)

        def read(k: int) -> None:
            started.wait(timeout=20)
            stager.read(pool, range(64), k * 32, k * 32 + count, out=outs[k])

        threads = [Thread(target=read, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    right = [same(out, blocks.tensor[k * 32 : k * 32 + count, 0]) for k, out in enumerate(outs)]
    assert right == [True, True] if locked else right.count(True) == 1
    assert bool(watch.taken()) != locked
    if locked:
        changes = sum(first != second for first, second in zip(device.threads, device.threads[1:], strict=False))
        assert (len(device.threads), changes) == (64, 1)


def test_a_failed_copy_reaches_the_caller():
    class Failing(ThreadDevice):
        def copy(self, stream, source, target):
            super().copy(stream, source, target[:, :1])

    blocks = random_blocks(1, 2, 4, (3,), torch.uint8)
    with Failing() as failing, pytest.raises(ValueError, match="could not broadcast"):
        Stager(failing, scheme="per_block").read(PagedPool(blocks.tensor), [0], 0, 4)


def test_runtime_needs_no_scheme_of_its_own():
    """The same loop that is proved is the loop that runs: what it does follows the scheme that it is given."""
    seen = []

    class Watched(ThreadDevice):
        def copy(self, stream, source, target):
            seen.append(stream)
            super().copy(stream, source, target)

    def renamed(operations):
        return [
            replace(operation, stream="other") if not isinstance(operation, HostCopy) else operation for operation in operations
        ]

    with Watched() as device:
        pool = PagedPool(random_blocks(1, 3, 2, (3,), torch.uint8).tensor)
        rows = PagedRows([2, 1].__getitem__, 3, 2, 0, 4)
        out = torch.zeros(1, 4, 3, dtype=torch.uint8)
        stats = Runtime(device, Buffers(device, None)).submit(edited("per_row", renamed).read(rows), pool.bytes, out).stats
    assert same(out[0], plain_read(pool.tensor, [2, 1], 0, 4))
    assert seen == ["kvstage other"] * 4
    assert (stats.copies, stats.waits, stats.bytes) == (4, 4, 12)


def slot_beyond_the_pool(operations):
    return [
        replace(op, target=replace(op.target, slot=op.target.buffer.slots)) if isinstance(op, Copy) else op for op in operations
    ]


def half_a_slot(operations):
    return [replace(op, target=replace(op.target, slot=0.5)) if isinstance(op, Copy) else op for op in operations]


def unknown_buffer(operations):
    other = Buffer("other", Memory.DEVICE, 6, 4)
    return [replace(op, target=other.at(0, 0, op.target.count)) if isinstance(op, Copy) else op for op in operations]


@pytest.mark.parametrize("rehearsed", [True, False])
@pytest.mark.parametrize("edit", [slot_beyond_the_pool, half_a_slot, unknown_buffer])
def test_what_a_later_step_does_wrong_is_refused_before_the_first_writes(monkeypatch, watch, edit, rehearsed):
    if not rehearsed:
        monkeypatch.setattr("kvstage.runtime.runtime.rehearse", lambda *_: None)
    good = LIBRARY["per_block"].write

    def second_step_wrong(rows: PagedRows):
        scheme = good(rows)
        return replace(scheme, step=lambda i: scheme.step(i) if i == 0 else iter(edit(list(scheme.step(i)))))

    pool = PagedPool(torch.zeros(6, 4, 3))
    with ThreadDevice() as device:
        stager = Stager(device, scheme=Pair(LIBRARY["per_block"].read, second_step_wrong))
        with pytest.raises((SchemeError,) if rehearsed else (SchemeError, IndexError)):
            stager.write(pool, [1, 2], 0, torch.ones(8, 3))
    assert pool.tensor.any() != rehearsed
    watch.taken()
