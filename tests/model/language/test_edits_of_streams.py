"""Schemes moved to other streams, and handed to the kernels of a caller's stream."""

from dataclasses import replace
from typing import Any

import pytest

from kvstage_model.language.edits import edited, handed_to, on_stream, orderings, without
from kvstage_model.language.operations import OnStream, RecordEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import by_block, by_chunk
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schemes.direct import direct_read, direct_write
from kvstage_model.schemes.gather import gather_pinned_read, gather_pinned_write, gather_read, gather_write
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_model.schemes.staged import staged_write
from tests.support.delivering import right, some, wrong_somewhere
from tests.support.tiers import often

ROWS = PagedRows((2, 0, 1).__getitem__, 3, 2, 1, 6)
ALL_AT_ONCE = (direct_read, direct_write, gather_pinned_read, gather_pinned_write)
"""Schemes that the host need not wait for inside the call."""


def made(function: SchemeFunction) -> Scheme:
    """The scheme on five rows of three blocks, with two slots where it has slots."""
    parts: dict[str, Any] = {"rows": ROWS, "runs": by_block(ROWS), "pieces": by_chunk(ROWS, 2)}
    return function(**{p.name: parts.get(p.name, 2) for p in declared(function)})


def streams(scheme: Scheme) -> set[str]:
    return {each.operation.stream for each in unroll([scheme]) if isinstance(each.operation, OnStream | SyncStream)}


@pytest.mark.parametrize("function", [staged_write, ring_read, ring_write, gather_read, gather_write, *ALL_AT_ONCE])
def test_on_another_stream_a_scheme_issues_the_same_and_stays_right(function: SchemeFunction) -> None:
    scheme = made(function)
    moved = on_stream(scheme, "copy", "other")
    assert streams(moved) == {"other" if stream == "copy" else stream for stream in streams(scheme)}
    back = on_stream(moved, "other", "copy")
    kinds = [[type(each.operation) for each in unroll([one])] for one in (scheme, moved, back)]
    assert kinds[0] == kinds[1] == kinds[2]
    assert right((moved, moved), "moved") > 40


def test_two_calls_on_two_streams_are_apart_where_the_host_waits() -> None:
    scheme = made(ring_read)
    assert right((scheme, on_stream(scheme, "copy", "other"), scheme), "three calls") > 100


def given(function: SchemeFunction) -> SchemeFunction:
    return edited(function, lambda scheme: handed_to(scheme, "copy", "kernels"))


@pytest.mark.parametrize("function", often(ALL_AT_ONCE, 1))
def test_between_kernels_of_the_caller_every_small_instance_is_right(function: SchemeFunction) -> None:
    every = some(given(function))
    assert sum(right(*instance) for instance in every) > 5 * len(every) > 200


@pytest.mark.parametrize("function", ALL_AT_ONCE)
def test_each_event_between_kernels_is_needed(function: SchemeFunction) -> None:
    """Behind the transfer in one call, before it where the last call's kernels still run."""
    scheme = given(function)(**{p.name: {"rows": ROWS, "runs": by_block(ROWS)}[p.name] for p in declared(function)})
    named = orderings(scheme)
    assert [str(name) for name in named] == [
        'RecordEvent of "caller\'s" on stream kernels',
        'WaitEvent of "caller\'s" on stream copy',
        "RecordEvent of 'moved' on stream copy",
        "WaitEvent of 'moved' on stream kernels",
    ]
    for name in named:
        broken = without(name)(scheme)
        assert next(races(unroll([broken, broken])), None) is not None, str(name)
        assert wrong_somewhere((broken, broken)), str(name)


# -- events that outlive a call, and events that don't


def undrained(scheme: Scheme) -> Scheme:
    """A ring that writes without its wait at the end: kernels on its own stream use the result."""
    assert scheme.result is not None
    return replace(scheme, epilogue=(), result=replace(scheme.result, target_on="copy"))


@pytest.mark.parametrize("fresh", [False, True])
def test_undrained_calls_need_events_that_outlive_them(fresh: bool) -> None:
    scheme = replace(undrained(made(ring_write)), fresh_events=fresh)
    assert list(races(unroll([scheme]))) == [], "one call is right either way"
    racy = next(races(unroll([scheme, scheme])), None) is not None
    assert racy == fresh
    assert wrong_somewhere((scheme, scheme)) == fresh


def test_fresh_events_do_no_harm_where_each_call_drains() -> None:
    for function in (ring_read, ring_write):
        scheme = replace(made(function), fresh_events=True)
        assert right((scheme, scheme), "fresh") > 100
        names = {each.operation.event.call for each in unroll([scheme, scheme]) if isinstance(each.operation, RecordEvent)}
        assert names == {0, 1}


def test_what_is_not_on_the_stream_is_left_alone() -> None:
    scheme = made(gather_read)
    moved = on_stream(scheme, "nobody", "other")
    for one, other in zip(unroll([scheme]), unroll([moved]), strict=True):
        assert type(one.operation) is type(other.operation)
        assert getattr(one.operation, "stream", None) == getattr(other.operation, "stream", None)
    assert streams(moved) == {"copy", "compute"}
