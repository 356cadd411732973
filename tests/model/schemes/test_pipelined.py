"""The schemes that keep several runs in flight: right for every number of slots, wrong without any of their events."""

from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import HostCopy, OnStream, Operation, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import by_chunk, by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schemes.gather import gather_read, gather_write
from kvstage_model.schemes.ring import ring_read, ring_write
from tests.support.delivering import right, right_on_every_schedule, rows, some, unwaited, wrong_somewhere
from tests.support.tiers import often

RINGS, GATHERS = (ring_read, ring_write), (gather_read, gather_write)
SCHEMES = (*RINGS, *GATHERS)
STRIDE = {ring_read: 5, ring_write: 5, gather_read: 13, gather_write: 13}
"""Which part of the small instances is tried each time; no divisor of the 3 or 9 choices of slots, so all slots occur."""


def transfer(length: int) -> PagedRows:
    """So many rows in blocks of 2, from row 1 of the first block on, the blocks in reverse."""
    blocks = length // 2 + 1
    return PagedRows(lambda k: blocks - 1 - k, blocks, 2, 1, 1 + length)


@pytest.mark.parametrize("function", often(SCHEMES, 1))
def test_small_instances_are_right(function: SchemeFunction) -> None:
    tried = some(function, every=STRIDE[function])
    assert len(tried) > 40
    assert sum(right(*instance) for instance in tried) > 5 * len(tried)
    assert {len(calls) for calls, _ in tried} == {1, 2}


@pytest.mark.extended
@pytest.mark.parametrize(("function", "start"), [(function, start) for function in SCHEMES for start in range(STRIDE[function])])
def test_every_small_instance_is_right(function: SchemeFunction, start: int) -> None:
    tried = some(function)[start :: STRIDE[function]]
    assert sum(right(*instance) for instance in tried) > 5 * len(tried) > 200


@pytest.mark.parametrize(("function", "most"), [(ring_read, 2), (ring_write, 2), (gather_read, 1), (gather_write, 1)])
def test_the_smallest_are_right_on_every_schedule(function: SchemeFunction, most: int) -> None:
    smallest = some(function, every=4, choose=lambda calls: rows(calls) <= most)
    assert sum(right_on_every_schedule(*instance) for instance in smallest) > 3 * len(smallest) > 40


@pytest.mark.parametrize("function", SCHEMES)
def test_without_waits_small_instances_are_wrong(function: SchemeFunction) -> None:
    broken = some(unwaited(function), every=5 * STRIDE[function] + 1)
    for calls, words in broken:
        assert next(races(unroll(calls)), None) is not None, words
        assert wrong_somewhere(calls), words
    assert len(broken) > 8


# -- when an event is needed: exactly where the ring comes round, counted without the axioms

DEPTHS = range(1, 5)
LENGTHS = range(1, 6)


def racy(scheme: Scheme) -> bool:
    return next(races(unroll([scheme])), None) is not None


def ring(function: SchemeFunction, named: Named, length: int, slots: int) -> bool:
    """Whether one call races without some of its events."""
    return racy(edited(function, without(named))(runs=by_row(transfer(length)), slots=slots))


def test_a_ring_that_is_written_needs_its_events_once_it_comes_round() -> None:
    seen: Counter[bool] = Counter()
    for length, slots in product(LENGTHS, DEPTHS):
        for named in (Named(SyncEvent, event="sent"), Named(RecordEvent, event="sent")):
            assert ring(ring_write, named, length, slots) == (length > slots)
        seen[length > slots] += 1
    assert min(seen.values()) > 5


def test_a_ring_that_is_read_needs_its_events_always() -> None:
    for length, slots in product(LENGTHS, DEPTHS):
        for named in (Named(SyncEvent, event="filled"), Named(RecordEvent, event="filled")):
            assert ring(ring_read, named, length, slots)


def gather(function: SchemeFunction, named: Named, length: int, device: int, pinned: int) -> bool:
    pieces = by_chunk(transfer(length), 1)
    return racy(edited(function, without(named))(pieces=pieces, device_slots=device, pinned_slots=pinned))


Needed = Callable[[int, int, int], bool]
NEEDED: tuple[tuple[SchemeFunction, Named, Needed], ...] = (
    # The host took piece i - device before it issues piece i, where the device ring is no shallower than the pinned one.
    (gather_read, Named(WaitEvent, event="free"), lambda length, device, pinned: device < pinned and length > device),
    (gather_read, Named(RecordEvent, event="free"), lambda length, device, pinned: device < pinned and length > device),
    (gather_read, Named(WaitEvent, event="packed"), lambda length, device, pinned: True),
    (gather_read, Named(RecordEvent, event="packed"), lambda length, device, pinned: True),
    (gather_read, Named(SyncEvent, event="filled"), lambda length, device, pinned: True),
    (gather_read, Named(RecordEvent, event="filled"), lambda length, device, pinned: True),
    (gather_write, Named(SyncEvent, event="sent"), lambda length, device, pinned: length > pinned),
    (gather_write, Named(WaitEvent, event="free"), lambda length, device, pinned: length > device),
    (gather_write, Named(RecordEvent, event="free"), lambda length, device, pinned: length > device),
    (gather_write, Named(WaitEvent, event="sent"), lambda length, device, pinned: True),
    (gather_write, Named(RecordEvent, event="sent"), lambda length, device, pinned: True),
)


@pytest.mark.parametrize(("function", "named", "needed"), NEEDED)
def test_each_event_of_a_gather_is_needed_exactly_where_its_ring_comes_round(
    function: SchemeFunction, named: Named, needed: Needed
) -> None:
    for length, device, pinned in product((1, 2, 3, 4), (1, 2, 3), (1, 2, 3)):
        assert gather(function, named, length, device, pinned) == needed(length, device, pinned), (length, device, pinned)


# -- what is in flight


def issued(scheme: Scheme) -> list[Operation]:
    return [each.operation for each in unroll([scheme]) if each.phase != "caller"]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_ring_that_is_read_has_all_its_slots_in_flight(slots: int) -> None:
    """Copies run ahead of the host by `slots`: counted in the order of issue."""
    operations = issued(ring_read(by_row(transfer(5)), slots))
    taken = [k for k, operation in enumerate(operations) if isinstance(operation, HostCopy)]
    ahead = [sum(type(operation).__name__ == "Copy" for operation in operations[:k]) - n for n, k in enumerate(taken)]
    assert ahead == [min(slots, 5 - n) for n in range(5)]


@pytest.mark.parametrize("function", GATHERS)
def test_a_gather_issues_a_kernel_and_a_copy_a_piece_on_two_streams(function: SchemeFunction) -> None:
    operations = issued(function(pieces=by_chunk(transfer(5), 2), device_slots=2, pinned_slots=2))
    kernel = "Gather" if function is gather_read else "Scatter"
    count = Counter((type(o).__name__, o.stream) for o in operations if isinstance(o, OnStream) and not isinstance(o, WaitEvent))
    assert (count[kernel, "compute"], count["Copy", "copy"]) == (3, 3)
    assert sum(isinstance(operation, HostCopy) for operation in operations) == 3
