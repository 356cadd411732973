"""Mutants: each change of an axiom turns at least one obligation red. Those of schemes and partitions are beside this file.

The wrong axioms are put into the prover and into the race finder alike, so that nothing but the proof can notice.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import pytest

from kvstage_model import schemes
from kvstage_model.language.operations import (
    Copy,
    Event,
    HostCopy,
    HostWrite,
    OnStream,
    Operation,
    RecordEvent,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Direction
from kvstage_model.ordering import axioms, races
from kvstage_model.ordering.axioms import Edge, Moment, Own
from kvstage_model.symbolic import window
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t3_result
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.loops import WAIT, Place, loop, staged, stored
from tests.support.solver import claimed
from tests.support.tiers import often

PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
READ, WRITE = Direction.READ, Direction.WRITE
Edges = Callable[[Operation, Operation], Iterator[Edge]]


def with_edges(monkeypatch: pytest.MonkeyPatch, edges: Edges) -> None:
    for module in (window, races):
        monkeypatch.setattr(module, "edges", edges)


# -- axioms taken away


def one_stream(place: Place, i: int) -> Iterator[Operation]:
    """Two copies into one slot, which nothing but the order of their stream keeps apart."""
    yield place.fetch(i)
    yield Copy("copy", place.scratched(i), place.staged(i))


def host_alone(place: Place, i: int) -> Iterator[Operation]:
    """Two writes of the host, which nothing but the order of its program keeps apart."""
    yield place.scribble(i)
    yield place.take(i)


def ring(place: Place, i: int) -> Iterator[Operation]:
    """Two slots, an event each."""
    yield SyncEvent(Event("sent", i % 2), aim=i - 2)
    yield place.scribble(i, i % 2)
    yield place.store(i, i % 2)
    yield RecordEvent(Event("sent", i % 2), "copy")


def handed_over(place: Place, i: int) -> Iterator[Operation]:
    """A stream waits for another one's copy into its source."""
    yield place.fetch(i, stream="a")
    yield RecordEvent(Event("filled"), "a")
    yield WaitEvent("copy", Event("filled"), aim=i)
    yield Copy("copy", place.staged(i), place.scratched(i))
    yield WAIT


LOST: dict[str, tuple[str, SchemeFunction]] = {
    "A1, the host's order": ("A1", loop(host_alone)),
    "A1, the host's order, for a staged read": ("A1", schemes.staged_read),
    "A3, a stream's order": ("A3", loop(one_stream)),
    "A5, a host's wait for an event": ("A5", loop(ring, slots=2, epilogue=lambda place: (WAIT,))),
    "A6, a stream's wait for an event": ("A6", loop(handed_over)),
    "A4, a stream's wait, for a staged read": ("A4", schemes.staged_read),
    "A4, a stream's wait, for a staged write": ("A4", schemes.staged_write),
}


@pytest.mark.parametrize(("axiom", "function"), often(LOST.values(), 2), ids=LOST.keys())
def test_without_an_axiom_a_proof_falls(axiom: str, function: SchemeFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    assert claimed(T1.queries(function)) is PROVED
    with_edges(
        monkeypatch, lambda first, second: (replace(e, when=e.when & (e.axiom != axiom)) for e in axioms.edges(first, second))
    )
    assert claimed(T1.queries(function)) is UNKNOWN
    assert judge(T1.of(function, "mutant")).verdict is REFUTED, "the race finder reads the same axioms"


OWN: dict[str, Callable[[Operation, Own], bool]] = {
    "A1, the host begins after its issue": lambda operation, rule: (
        rule.earlier is Moment.ISSUE and not isinstance(operation, OnStream)
    ),
    "A2, work begins after its issue": lambda operation, rule: rule.earlier is Moment.ISSUE and isinstance(operation, OnStream),
    "A2, an end comes after its begin": lambda operation, rule: rule.later is Moment.END,
}


@pytest.mark.parametrize("lost", often(OWN.values(), 1), ids=OWN.keys())
def test_without_the_order_of_an_operations_own_moments_a_proof_falls(
    lost: Callable[[Operation, Own], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = (schemes.staged_read, loop(ring, slots=2, epilogue=lambda place: (WAIT,)))
    assert {claimed(T1.queries(function)) for function in functions} == {PROVED}

    def own(operation: Operation) -> Iterator[Own]:
        return (rule for rule in axioms.own(operation) if not lost(operation, rule))

    monkeypatch.setattr(window, "own", own)
    assert UNKNOWN in {claimed(T1.queries(function)) for function in functions}


# -- axioms that are too strong


def when(condition: Callable[[Operation, Operation], bool], earlier: Moment, later: Moment) -> Edges:
    """All axioms, and one edge more."""

    def edges(first: Operation, second: Operation) -> Iterator[Edge]:
        more = [Edge("wrong", earlier, later)] if condition(first, second) else []
        return chain(axioms.edges(first, second), more)

    return edges


def is_copy(first: Operation, second: Operation) -> bool:
    return isinstance(first, Copy)


def unwaited(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield place.take(i)


def unwaited_refill(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    yield place.store(i)


def another_streams_wait(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield SyncStream("another")
    yield place.take(i)


def two_streams(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i, stream="a")
    yield Copy("b", place.scratched(i), place.staged(i))


def wait_behind_the_use(place: Place, i: int) -> Iterator[Operation]:
    yield from unwaited(place, i)
    yield SyncStream("copy")


ADDED: dict[str, tuple[Edges, SchemeFunction]] = {
    "a copy has ended when the host goes on": (when(is_copy, Moment.END, Moment.ISSUE), loop(unwaited)),
    "a copy ends at its issue, for a refill": (when(is_copy, Moment.END, Moment.ISSUE), loop(unwaited_refill)),
    "a wait covers other streams": (
        when(lambda first, second: is_copy(first, second) and isinstance(second, SyncStream), Moment.END, Moment.END),
        loop(another_streams_wait),
    ),
    "streams wait for one another": (
        when(lambda first, second: is_copy(first, second) and isinstance(second, Copy), Moment.END, Moment.BEGIN),
        loop(two_streams),
    ),
    "the host's copy waits for the device": (
        when(lambda first, second: is_copy(first, second) and isinstance(second, HostCopy), Moment.END, Moment.BEGIN),
        loop(wait_behind_the_use),
    ),
    "the host's write waits for the device": (
        when(lambda first, second: is_copy(first, second) and isinstance(second, HostWrite), Moment.END, Moment.BEGIN),
        loop(unwaited_refill),
    ),
}


@pytest.mark.parametrize(("edges", "function"), ADDED.values(), ids=ADDED.keys())
def test_with_an_axiom_too_strong_what_is_broken_is_proved(
    edges: Edges, function: SchemeFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an obligation that must be REFUTED goes red."""
    assert judge(T1.of(function, "right axioms")).verdict is REFUTED
    with_edges(monkeypatch, edges)
    assert judge(T1.of(function, "wrong axioms")).verdict is PROVED


# -- a scheme's order


@pytest.mark.parametrize("direction", Direction)
def test_operations_in_another_order_make_an_obligation_fall(direction: Direction) -> None:
    body = staged if direction is READ else stored

    def reordered(place: Place, i: int) -> Iterator[Operation]:
        first, *rest = body(place, i)
        yield from (*rest, first)

    function = loop(reordered, direction=direction)
    assert UNKNOWN in {claimed(T1.queries(function)), claimed(t3_result.queries(function))}
