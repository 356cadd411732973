"""The catalogue names each obligation once, covers every scheme, and states what must be refuted."""

import inspect
from collections import Counter
from itertools import product
from typing import Any

import pytest

from kvstage_model import schemes
from kvstage_model.language.merged_runs import merged
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import Runs, by_block, by_chunk, by_row
from kvstage_model.ordering.program import describe, unroll
from kvstage_model.schemes import registry
from kvstage_model.symbolic import division
from kvstage_proofs.catalogue.catalogue import MISTAKES, OF_A_SCHEME, catalogue, directions, of_scheme
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.theorems.l1_gap_lemma import L1
from kvstage_proofs.theorems.p1_partitions import P1

ALL = tuple(catalogue())


def test_no_name_occurs_twice() -> None:
    names = Counter(obligation.statement.name for obligation in ALL)
    assert max(names.values()) == 1
    assert len(names) > 50


def test_every_scheme_function_has_every_theorem() -> None:
    """A scheme that is added and not listed here would run unproved."""
    stated = {function for entry in registry.ENTRIES for _, function in directions(entry)}
    written = {function for name, function in inspect.getmembers(schemes, inspect.isfunction) if name.endswith(("_read", "_write"))}
    assert written <= stated
    names = {obligation.statement.name for obligation in ALL if obligation.statement.expected is Verdict.PROVED}
    for entry in registry.ENTRIES:
        for direction, _ in directions(entry):
            assert {f"{entry.name}.{direction}:{theorem.name}" for theorem in OF_A_SCHEME} <= names


def test_what_the_library_runs_is_in_the_catalogue() -> None:
    """The library may bind a loop to a partition: then it issues what that loop issues over it, and both are proved."""
    entries = {entry.name: entry for entry in registry.ENTRIES}
    partitions = {by_row(ROWS), by_block(ROWS), by_chunk(ROWS, 2), merged(ROWS, 4)}
    assert registry.LIBRARY
    for name, pair in registry.LIBRARY.items():  # COPY is in the catalogue as it stands
        for run, proved in ((pair.read, entries[name].proved.read), (pair.write, entries[name].proved.write)):
            ran = issued(run, {"rows": ROWS, "slots": 2, "chunk": 2, "most": 4})
            values = [{"rows": ROWS, "runs": cut, "pieces": cut, **SLOTS} for cut in partitions]
            assert ran in [issued(proved, each) for each in values]
            assert len(ran) >= 2


ROWS = PagedRows((3, 0, 1).__getitem__, 4, 2, 1, 6)
SLOTS = {"slots": 2, "device_slots": 2, "pinned_slots": 2}


def issued(function: SchemeFunction, values: dict[str, Any]) -> list[str]:
    """What a scheme issues, in words, given those of the values that it has parameters for."""
    wanted = {parameter.name for parameter in declared(function)}
    if "runs" in wanted and not isinstance(values["runs"], Runs):
        return []
    return [describe(each) for each in unroll([function(**{name: values[name] for name in wanted})])]


def test_every_mistake_is_refuted_by_some_theorem_in_each_direction() -> None:
    refuted = {obligation.statement.subject for obligation in ALL if obligation.statement.expected is Verdict.REFUTED}
    for name, (mistake, _) in product(("staged", "per_row", "per_block"), MISTAKES):
        assert {f"{name} {mistake}.{direction}" for direction in ("read", "write")} <= refuted


def test_no_expectation_is_weaker_than_a_verdict_that_says_something() -> None:
    assert {obligation.statement.expected for obligation in ALL} == {Verdict.PROVED, Verdict.REFUTED}


CHEAP = [L1.of(division.lemmas, "lemmas"), P1.of(by_row, "by_row"), *of_scheme(registry.LIBRARY["per_row"].read, "per_row", "read")]


@pytest.mark.parametrize("obligation", CHEAP, ids=lambda obligation: obligation.statement.name)
def test_cheap_obligations_get_their_verdict(obligation: Obligation) -> None:
    assert judge(obligation).ok


@pytest.mark.extended
@pytest.mark.parametrize("obligation", ALL, ids=lambda obligation: obligation.statement.name)
def test_each_obligation_gets_its_verdict(obligation: Obligation) -> None:
    judgement = judge(obligation)
    assert judgement.ok, judgement.reason
