"""The schemes that keep nothing in flight but what one wait covers, in every small instance."""

from collections import Counter

import pytest

from kvstage_model.language.operations import Copy, Gather, Scatter
from kvstage_model.language.paged_rows import IntoLarger, IntoSmaller, PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import Pieces, Runs, by_block, by_chunk, by_row
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schemes.direct import direct_read, direct_write
from kvstage_model.schemes.gather import (
    gather_copy_read,
    gather_copy_write,
    gather_host_read,
    gather_host_write,
    gather_pinned_read,
    gather_pinned_write,
)
from kvstage_model.schemes.pool_copy import copy_read, copy_write
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.schemes.staged import staged_read, staged_write
from kvstage_model.search.instances import small_pairs
from tests.support.delivering import right, right_on_every_schedule, rows, some, unwaited, wrong_somewhere
from tests.support.tiers import often

KERNELS = (gather_pinned_read, gather_pinned_write, gather_host_read, gather_host_write)
COPIES = (staged_read, staged_write, direct_read, direct_write, copy_read, copy_write)
SCHEMES = (*COPIES, *KERNELS, gather_copy_read, gather_copy_write)
ROWS = PagedRows((3, 0, 4, 1).__getitem__, 5, 3, 2, 11)
"""Nine rows of four blocks of 3: one row of block 3, blocks 0 and 4, two rows of block 1."""


@pytest.mark.parametrize("function", often(SCHEMES, 4))
def test_every_small_instance_is_right(function: SchemeFunction) -> None:
    every = some(function)
    assert len(every) > 40
    assert sum(right(*instance) for instance in every) > 5 * len(every)
    assert {len(calls) for calls, _ in every} == {1, 2}


@pytest.mark.parametrize("function", SCHEMES)
def test_the_smallest_are_right_on_every_schedule(function: SchemeFunction) -> None:
    smallest = some(function, choose=lambda calls: rows(calls) <= 2)
    assert sum(right_on_every_schedule(*instance) for instance in smallest) > len(smallest) > 10


@pytest.mark.parametrize("function", SCHEMES)
def test_without_waits_every_small_instance_is_wrong(function: SchemeFunction) -> None:
    broken = some(unwaited(function), every=3)
    for calls, words in broken:
        assert next(races(unroll(calls)), None) is not None, words
        assert wrong_somewhere(calls), words
    assert len(broken) > 15


def kinds(scheme: SchemeFunction, **arguments: object) -> Counter[str]:
    """How many operations of each kind one call issues, without its caller's."""
    issued = unroll([scheme(**arguments)])
    return Counter(type(each.operation).__name__ for each in issued if each.phase != "caller")


@pytest.mark.parametrize(("runs", "number"), [(by_row(ROWS), 9), (by_block(ROWS), 4)])
def test_staged_copies_and_waits_once_a_run_and_direct_waits_once(runs: Runs, number: int) -> None:
    for staged in (staged_read, staged_write):
        assert kinds(staged, runs=runs) == {"Copy": number, "SyncStream": number, "HostCopy": number}
    for direct in (direct_read, direct_write):
        assert kinds(direct, runs=runs) == {"Copy": number, "SyncStream": 1}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_gather_or_scatter_of_all_rows_is_one_kernel_and_one_wait(kernel: SchemeFunction) -> None:
    name = "Gather" if kernel.__name__.endswith("read") else "Scatter"
    assert kinds(kernel, rows=ROWS) == {name: 1, "SyncStream": 1}


@pytest.mark.parametrize(("most", "copies"), [(6, 3), (5, 4), (3, 4)])
def test_per_run_copies_neighbouring_blocks_at_once(most: int, copies: int) -> None:
    """Blocks 3, 0, 1, 4: the middle two are neighbours, six rows in the pool of one slot."""
    rows = PagedRows((3, 0, 1, 4).__getitem__, 5, 3, 2, 11)
    for function in (LIBRARY["per_run"].read, LIBRARY["per_run"].write):
        assert kinds(function, rows=rows, most=most)["Copy"] == copies
        assert right((function(rows, most),) * 2, f"up to {most} rows")


@pytest.mark.parametrize("function", SCHEMES)
def test_an_empty_transfer_moves_nothing(function: SchemeFunction) -> None:
    nothing = PagedRows(ROWS.table, 5, 3, 4, 4)
    (parameter,) = declared(function)
    kinds = {PagedRows: nothing, Runs: by_block(nothing), IntoLarger: next(small_pairs(IntoLarger, nothing, distinct=True))}
    kinds |= {IntoSmaller: kinds[IntoLarger], Pieces: by_chunk(nothing, 2)}
    scheme = function(**{parameter.name: kinds[parameter.kind]})
    assert not any(isinstance(each.operation, Copy | Gather | Scatter) for each in unroll([scheme]))
    assert scheme.steps == 0


@pytest.mark.parametrize("name", often(LIBRARY, 3))
def test_what_the_library_offers_is_right_from_its_first_day(name: str) -> None:
    """Both directions, on transfers that are clipped on both sides, on one and on none, through few slots and many."""
    transfers = (ROWS, PagedRows(ROWS.table, 5, 3, 3, 9), PagedRows(ROWS.table, 5, 3, 4, 5))
    judged = 0
    for function in (LIBRARY[name].read, LIBRARY[name].write):
        wanted = {parameter.name for parameter in declared(function)} - {"rows"}
        for transfer in transfers:
            for size in (1, 2):
                calls = tuple(function(rows=transfer, **dict.fromkeys(wanted, size)) for _ in range(2))
                judged += right(calls, f"{name}, {wanted}: {size}")
    assert judged > 500
