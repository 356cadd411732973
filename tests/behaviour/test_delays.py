"""The library on the simulated device: every scheme under every delay, and its mistakes found."""

import pytest
import torch

from kvstage import PagedPool, SimDevice, Stager, Transfer
from kvstage_model import schemes
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.partitions import by_chunk
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.schedule import IssueOrder, Schedule
from kvstage_model.schemes.base import COMPUTE, STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.broken import early_wait, edited, late_wait, unedited, without, without_wait
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same
from tests.support.tiers import often

NAMES = ["per_row", "per_block"]
CASES = [(1, 0, 3), (2, 1, 4), (2, 0, 4), (3, 2, 7), (4, 1, 3)]
"""Block size, start and stop."""


def read_right(scheme, schedule: Schedule, size: int, start: int, stop: int) -> bool:
    """Whether a read under a schedule gives the rows of the definition."""
    blocks, table = random_blocks(1, 5, size, (3,), torch.bfloat16), [3, 0, 4, 1, 2]
    out = random_rows(2, stop - start, (3,), torch.bfloat16)
    before, returned = blocks.memory(), out.clone()
    with SimDevice(schedule) as device:
        Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), table, start, stop, out=out).wait()
        device.host(lambda: returned.copy_(out), "the caller takes the rows")
    assert torch.equal(blocks.base, before)
    return same(returned, plain_read(blocks.tensor, table, start, stop))


def write_right(scheme, schedule: Schedule, size: int, start: int, stop: int) -> bool:
    """Whether the pool holds what the definition says when a write has returned, and later."""
    blocks, table = random_blocks(1, 5, size, (3,), torch.bfloat16), [3, 0, 4, 1, 2]
    rows = random_rows(2, stop - start, (3,), torch.bfloat16)
    after, returned = plain_write(blocks, table, start, rows), blocks.memory()
    with SimDevice(schedule) as device:
        Stager(device, scheme=scheme).write(PagedPool(blocks.tensor), table, start, rows).wait()
        device.host(lambda: returned.copy_(blocks.base), "the caller looks at the pool")
    return same(returned, after) and same(blocks.base, after)


RIGHT = {"read": read_right, "write": write_right}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("case", CASES)
def test_right_under_every_delay(name, direction, case):
    results = list(delays(lambda schedule: RIGHT[direction](name, schedule, *case)))
    assert len(results) > 2
    assert all(right for _, right in results)


def ring(slots: int) -> Pair:
    return Pair(lambda rows: LIBRARY["ring"].read(rows, slots), lambda rows: LIBRARY["ring"].write(rows, slots))


def gather(device_slots: int, pinned_slots: int, chunk: int = 1) -> Pair:
    return Pair(
        lambda rows: schemes.gather_read(by_chunk(rows, chunk), device_slots, pinned_slots),
        lambda rows: schemes.gather_write(by_chunk(rows, chunk), device_slots, pinned_slots),
    )


def gather_copy(chunk: int) -> Pair:
    return Pair(
        lambda rows: schemes.gather_copy_read(by_chunk(rows, chunk)), lambda rows: schemes.gather_copy_write(by_chunk(rows, chunk))
    )


PIPELINES = {
    "direct": LIBRARY["direct"],
    "gather_pinned": LIBRARY["gather_pinned"],
    "gather_host": LIBRARY["gather_host"],
    "per_run": Pair(lambda rows: LIBRARY["per_run"].read(rows, 8), lambda rows: LIBRARY["per_run"].write(rows, 8)),
    **{f"ring of {slots}": ring(slots) for slots in (1, 2, 3)},
    **{f"gather_copy, {chunk} a slot": gather_copy(chunk) for chunk in (1, 2, 9)},
    **{
        f"gather of {device_slots} and {pinned_slots}, {chunk} a slot": gather(device_slots, pinned_slots, chunk)
        for device_slots, pinned_slots, chunk in [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (1, 1, 2), (2, 3, 2), (4, 4, 4)]
    },
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("case", often(CASES, 40))
def test_events_and_kernels_are_right_under_every_delay(name, direction, case):
    results = list(delays(lambda schedule: RIGHT[direction](PIPELINES[name], schedule, *case)))
    assert len(results) > 2
    assert [schedule for schedule, right in results if not right] == []


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("direction", RIGHT)
def test_a_caller_who_forgets_to_wait_gets_wrong_rows_where_the_scheme_has_left_some(monkeypatch, name, direction):
    monkeypatch.setattr(Transfer, "wait", lambda self, timeout=None: None)
    results = list(delays(lambda schedule: RIGHT[direction](PIPELINES[name], schedule, 2, 1, 4)))
    assert all(right for _, right in results) == (not name.startswith(("direct", "gather_pinned", "gather_host", "gather_copy")))


SYNC, RECORD, LAST = Named(SyncEvent), Named(RecordEvent), Named(SyncStream)
ON_COPY, ON_COMPUTE = Named(WaitEvent, STREAM), Named(WaitEvent, COMPUTE)
MISTAKES = [
    # scheme, direction, what is lost, whether some delay shows it
    ("ring of 2", "read", SYNC, True),
    ("ring of 2", "read", RECORD, True),
    ("ring of 2", "write", SYNC, True),
    ("ring of 2", "write", RECORD, True),
    ("ring of 2", "write", LAST, True),
    ("direct", "read", LAST, True),
    ("direct", "write", LAST, True),
    ("gather_pinned", "read", LAST, True),
    ("gather_pinned", "write", LAST, True),
    ("gather_host", "read", LAST, True),
    ("gather_host", "write", LAST, True),
    ("gather_copy, 2 a slot", "read", LAST, True),
    ("gather_copy, 2 a slot", "write", LAST, True),
    ("per_run", "read", LAST, True),
    ("per_run", "write", LAST, True),
    ("gather of 1 and 2, 1 a slot", "read", SYNC, True),
    ("gather of 1 and 2, 1 a slot", "read", RECORD, True),
    ("gather of 1 and 2, 1 a slot", "read", ON_COPY, True),
    ("gather of 1 and 2, 1 a slot", "read", ON_COMPUTE, True),
    ("gather of 2 and 2, 1 a slot", "read", ON_COMPUTE, False),  # the host's wait for the pinned slot covers the device slot
    ("gather of 2 and 1, 1 a slot", "write", SYNC, True),
    ("gather of 2 and 2, 1 a slot", "write", RECORD, True),
    ("gather of 2 and 2, 1 a slot", "write", ON_COPY, True),
    ("gather of 2 and 2, 1 a slot", "write", ON_COMPUTE, True),
    ("gather of 2 and 2, 1 a slot", "write", LAST, True),
]


@pytest.mark.parametrize(("name", "direction", "lost", "shows"), MISTAKES, ids=str)
def test_some_delay_shows_each_lost_wait_or_record(name, direction, lost, shows):
    scheme = without(PIPELINES[name], lost)
    results = list(delays(lambda schedule: RIGHT[direction](scheme, schedule, 1, 1, 5)))
    assert (not all(right for _, right in results)) == shows
    assert RIGHT[direction](scheme, IssueOrder(), 1, 1, 5), "where nothing is late, no mistake shows"


@pytest.mark.parametrize("name", PIPELINES)
def test_every_delay_gives_the_bytes_of_the_loop_over_rows(name):
    """The same calls under the same delays: what a read has at its end, by the scheme and by per_row."""

    def rows_of(scheme: str | Pair, schedule: Schedule) -> torch.Tensor:
        blocks = random_blocks(1, 5, 2, (3,), torch.bfloat16)
        with SimDevice(schedule) as device:
            read = Stager(device, scheme=scheme).read(PagedPool(blocks.tensor), [3, 0, 4], 1, 6)
            read.wait()
            return read.result().clone()

    baseline = rows_of("per_row", IssueOrder())
    results = list(delays(lambda schedule: rows_of(PIPELINES[name], schedule)))
    assert len(results) > 2
    assert all(same(rows, baseline) for _, rows in results)


@pytest.mark.parametrize("name", ["ring of 2", "gather of 1 and 2, 1 a slot", "direct"])
def test_calls_behind_one_another_are_right_under_every_delay(name):
    """A stager's events and staging memory outlive a call: writes, then reads, of two pools in turn."""

    def right(schedule: Schedule) -> bool:
        pools = [random_blocks(seed, 4, 2, (3,), torch.uint8) for seed in (1, 2)]
        rows = [random_rows(seed, 3, (3,), torch.uint8) for seed in (3, 4)]
        with SimDevice(schedule) as device:
            stager = Stager(device, scheme=PIPELINES[name])
            for blocks, row in zip(pools, rows, strict=True):
                stager.write(PagedPool(blocks.tensor), [3, 0], 1, row).wait()
            found = []
            for blocks in pools:
                read = stager.read(PagedPool(blocks.tensor), [3, 0], 1, 4)
                read.wait()
                found.append(read.result().clone())
        return all(same(row, wanted) for row, wanted in zip(found, rows, strict=True))

    assert all(right for _, right in delays(right))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
def test_right_under_every_schedule_of_a_small_call(name, direction):
    results = list(exhaustive(lambda schedule: RIGHT[direction](name, schedule, 2, 1, 4)))
    assert results
    assert all(right for _, right in results)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", RIGHT)
@pytest.mark.parametrize("edit", [without_wait, early_wait, late_wait])
def test_some_delay_shows_each_mistake_and_issue_order_shows_none(name, direction, edit):
    scheme = edited(name, edit)
    results = list(delays(lambda schedule: RIGHT[direction](scheme, schedule, 2, 1, 4)))
    wrong = [schedule for schedule, right in results if not right]
    assert RIGHT[direction](edited(name, unedited), IssueOrder(), 2, 1, 4)
    harmless = edit is late_wait and direction == "write"
    assert bool(wrong) == (not harmless)
    assert RIGHT[direction](scheme, IssueOrder(), 2, 1, 4), "where nothing is late, no mistake shows"


@pytest.mark.parametrize("name", ["direct", "gather_pinned"])
def test_polling_a_transfer_is_right_under_every_delay(name):
    def polled(schedule: Schedule) -> bool:
        blocks = random_blocks(1, 5, 2, (3,), torch.bfloat16)
        with SimDevice(schedule) as device:
            read = Stager(device, scheme=name).read(PagedPool(blocks.tensor), [3, 0, 4], 1, 6)
            while not read.query():
                pass
            rows = read.result().clone()
        return same(rows, plain_read(blocks.tensor, [3, 0, 4], 1, 6))

    results = list(delays(polled))
    assert len(results) > 2
    assert all(right for _, right in results)
