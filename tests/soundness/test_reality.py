"""PROVED against reality: what the prover says of random loops, against every small instance of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Operation
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering import axioms
from kvstage_model.ordering.axioms import Edge, Moment
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import Race, races
from kvstage_model.search.faults import wrong_rows
from kvstage_model.symbolic import window as window_module
from kvstage_model.symbolic.scheme_model import Instance
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t1_no_hazard, t3_result
from kvstage_proofs.theorems.t3_provenance import Chain
from tests.support.bodies import Body, body, function, reader, ring
from tests.support.solver import claimed

MOST_STEPS = 6
"""More than the search of the prover itself tries."""
PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict


def race(scheme: SchemeFunction) -> Race | None:
    """The first race in an instance of up to MOST_STEPS steps, called once or twice."""
    instances = ([scheme(n=n)] * calls for calls in (1, 2) for n in range(1, MOST_STEPS + 1))
    return next((found for calls in instances for found in races(unroll(calls))), None)


def hunt(seeds: range, make: Callable[[Random], Body] = body) -> Counter[Verdict]:
    """Verdicts on T1 of random bodies; PROVED and racy fails the test, and so does REFUTED with no race."""
    seen: Counter[Verdict] = Counter()
    for seed in seeds:
        tried = make(Random(seed))
        verdict, racy = claimed(t1_no_hazard.queries(function(tried))), race(function(tried))
        assert not (verdict is PROVED and racy), f"seed {seed}: PROVED, and yet it races: {tried}"
        if verdict is UNKNOWN:
            verdict = REFUTED if racy else UNKNOWN
        seen[verdict] += 1
        if verdict is UNKNOWN:
            print(f"UNKNOWN: seed {seed}: {tried}")
    return seen


def test_no_random_loop_that_is_proved_free_of_hazards_races() -> None:
    seen = hunt(range(12))
    assert seen[PROVED] >= 2
    assert seen[REFUTED] >= 2
    assert seen[UNKNOWN] <= 2, "the window proves less than it did"


@pytest.mark.extended
@pytest.mark.parametrize("part", range(8))
def test_no_random_loop_of_many_that_is_proved_free_of_hazards_races(part: int) -> None:
    seen = hunt(range(1000 + 120 * part, 1120 + 120 * part))
    assert seen[PROVED] >= 15
    assert seen[REFUTED] >= 15


@pytest.mark.extended
def test_no_random_ring_of_events_that_is_proved_free_of_hazards_races() -> None:
    seen = hunt(range(8), ring)
    assert seen[PROVED] >= 2
    assert seen[REFUTED] >= 1


@pytest.mark.extended
@pytest.mark.parametrize("part", range(8))
def test_no_random_ring_of_many_that_is_proved_free_of_hazards_races(part: int) -> None:
    seen = hunt(range(1000 + 10 * part, 1010 + 10 * part), ring)
    assert seen[PROVED] >= 2
    assert seen[REFUTED] >= 1


def delivers(scheme: SchemeFunction) -> bool:
    """Whether the right rows come of every instance of up to 4 steps, called once or twice."""
    return all(wrong_rows((scheme(n=n),) * calls, "") is None for calls in (1, 2) for n in range(1, 5))


def results(seeds: range) -> Counter[Verdict]:
    """Verdicts on T3 of random bodies with a caller; PROVED and yet wrong rows fails the test."""
    seen: Counter[Verdict] = Counter()
    for seed in seeds:
        tried = reader(Random(seed))
        verdict, right = claimed(t3_result.queries(function(tried))), delivers(function(tried))
        assert not (verdict is PROVED and not right), f"seed {seed}: PROVED, and yet rows are wrong: {tried}"
        if verdict is UNKNOWN:
            verdict = UNKNOWN if right else REFUTED
        seen[verdict] += 1
        if verdict is UNKNOWN:
            print(f"UNKNOWN: seed {seed}: {tried}")
    return seen


def test_no_random_read_that_is_proved_delivers_wrong_rows() -> None:
    seen = results(range(10))
    assert seen[PROVED] >= 2
    assert seen[REFUTED] >= 2
    assert seen[UNKNOWN] <= 2, "the chain of witnesses proves less than it did"


@pytest.mark.extended
@pytest.mark.parametrize("part", range(8))
def test_no_random_read_of_many_that_is_proved_delivers_wrong_rows(part: int) -> None:
    seen = results(range(1000 + 80 * part, 1080 + 80 * part))
    assert seen[PROVED] >= 10
    assert seen[REFUTED] >= 10


def ends_at_issue(first: Operation, second: Operation) -> Iterator[Edge]:
    """A wrong axiom: a copy has ended when the host goes on."""
    yield from axioms.edges(first, second)
    yield Edge("wrong", Moment.END, Moment.ISSUE)


def test_a_prover_with_a_wrong_axiom_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "edges", ends_at_issue)
    with pytest.raises(AssertionError, match="PROVED, and yet it races"):
        hunt(range(20))


def any_witness(chain: Chain, cell: Rows, reader: Instance) -> Iterator[tuple[Instance, int, Any]]:
    """Every writer of the cell as its witness, so that each query may choose another one."""
    yield from chain._writers(cell, reader)


def test_a_prover_that_takes_another_witness_for_each_query_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chain, "witnesses", any_witness)
    with pytest.raises(AssertionError, match="PROVED, and yet rows are wrong"):
        results(range(40))
