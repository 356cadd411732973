"""The catalogue names each obligation once, covers every scheme, and states what must be refuted."""

import inspect
from collections import Counter

import pytest

from kvstage_model import divisors, library, schemes
from kvstage_model.runs import by_row
from kvstage_proofs.catalogue import ENTRIES, MISTAKES, OF_A_SCHEME, catalogue, of_scheme
from kvstage_proofs.judge import judge
from kvstage_proofs.lemmas import L1
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.partitions import P1

ALL = tuple(catalogue())


def test_no_name_occurs_twice() -> None:
    names = Counter(obligation.statement.name for obligation in ALL)
    assert max(names.values()) == 1
    assert len(names) > 50


def test_every_scheme_function_has_every_theorem() -> None:
    """A scheme that is added and not listed here would run unproved."""
    stated = {function for entry in ENTRIES for _, function in entry.directions}
    written = {
        function
        for name, function in inspect.getmembers(schemes, inspect.isfunction)
        if name.endswith(("_read", "_write")) and function.__module__ == schemes.__name__
    }
    assert stated == written
    names = {obligation.statement.name for obligation in ALL if obligation.statement.expected is Verdict.PROVED}
    for entry in ENTRIES:
        for direction, _ in entry.directions:
            assert {f"{entry.name}.{direction}:{theorem.name}" for theorem in OF_A_SCHEME} <= names


def test_what_the_library_runs_is_in_the_catalogue() -> None:
    entries = {entry.name: entry for entry in ENTRIES}
    assert library.LIBRARY
    for name, pair in library.LIBRARY.items():
        assert (entries[name].read, entries[name].write) == (pair.read, pair.write)


def test_every_mistake_is_refuted_by_some_theorem_in_each_direction() -> None:
    refuted = {obligation.statement.subject for obligation in ALL if obligation.statement.expected is Verdict.REFUTED}
    for entry in ENTRIES:
        for mistake, _ in MISTAKES:
            assert {f"{entry.name} {mistake}.{direction}" for direction in ("read", "write")} <= refuted


def test_no_expectation_is_weaker_than_a_verdict_that_says_something() -> None:
    assert {obligation.statement.expected for obligation in ALL} == {Verdict.PROVED, Verdict.REFUTED}


CHEAP = [L1.of(divisors.lemmas, "lemmas"), P1.of(by_row, "by_row"), *of_scheme(library.per_row_read, "per_row", "read")]


@pytest.mark.parametrize("obligation", CHEAP, ids=lambda obligation: obligation.statement.name)
def test_cheap_obligations_get_their_verdict(obligation: Obligation) -> None:
    assert judge(obligation).ok


@pytest.mark.extended
@pytest.mark.parametrize("obligation", ALL, ids=lambda obligation: obligation.statement.name)
def test_each_obligation_gets_its_verdict(obligation: Obligation) -> None:
    judgement = judge(obligation)
    assert judgement.ok, judgement.reason
