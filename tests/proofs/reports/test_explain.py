"""`kvstage explain`: the whole of an obligation, in sections."""

import re
from inspect import getsource
from typing import Any

import pytest

from kvstage_model import schemes
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.parameters import Parameter, SchemeFunction, declared
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import Flags
from kvstage_model.ordering import axioms as module
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Judgement, Obligation, Verdict
from kvstage_proofs.reports.explain import _range, axioms, explained
from kvstage_proofs.targets.names import obligations
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.claims import PROVED, REFUTED, UNKNOWN, UNSUPPORTED, claim

STAGED = T1.of(schemes.staged_read, "staged", "read")
NO_WAIT = T1.of(edited(schemes.staged_read, without(Named(SyncStream))), "staged without its wait", "read", REFUTED)


def sections(obligation: Obligation) -> tuple[Judgement, str, dict[str, list[str]]]:
    """The judgement, the first line, and the lines under each title."""
    judgement, (head, *lines) = explained(obligation)
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith(" "):
            found[line] = []
        else:
            found[list(found)[-1]].append(line[2:])
    return judgement, head, found


def joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def test_a_proved_one_tells_what_is_claimed_assumed_and_asked() -> None:
    judgement, head, found = sections(STAGED)
    assert judgement.verdict is PROVED
    assert head == "staged.read:T1  no hazard: PROVED, as expected"
    assert list(found) == ["claim", "for", "assumed", "asked"]
    assert joined(found["claim"]) == STAGED.statement.claim
    assert found["for"][0].startswith(
        "runs: every transfer, cut into runs, each in one block, in any way that fulfils the contract"
    )
    assert "  - parts are disjoint and in order" in found["for"]
    assert [line.split("  ")[0] for line in found["assumed"]] == ["A1", "A2", "A3", "A4"]
    (asked,) = found["asked"]
    assert asked.startswith(f"{len(judge(STAGED).asked)} queries, ")
    # two steps of a copy, a wait and the host's copy each
    assert re.search(r"the largest has 6 operations in its window, \d+ assertions$", asked)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (schemes.staged_write, "no block twice in the table; the contract:"),
        (schemes.staged_read, "a block may be in the table more than once; the contract:"),
        (schemes.gather_pinned_read, "every block table that names blocks of the pool; a block may be in the table more than once"),
        (schemes.gather_pinned_write, "every block table that names blocks of the pool; no block twice in the table"),
        (schemes.ring_read, "slots: every number from 1 on, one for each call; one for all where it sizes a buffer"),
    ],
)
def test_the_ranges_of_the_parameters_are_told(function: SchemeFunction, words: str) -> None:
    _, _, found = sections(T7.of(function, "s", "read"))
    assert words in [line.strip() for line in found["for"]]


def test_the_range_of_flags_is_told() -> None:
    (asking,) = obligations(("ring that asks for free slots.write:T1",))
    told = list(_range(Parameter("free", Flags)))
    assert told == ["free: every answer, yes or not yet, to the query of every step, in every call anew"]
    for parameter in declared(asking.subject):  # type: ignore[arg-type]
        assert (list(_range(parameter)) == told) == (parameter.kind is Flags)


def test_the_ranges_of_counts_are_those_of_the_scheme_that_is_counted() -> None:
    (counts,) = obligations(("ring.read:T4",))
    assert "slots: every number from 1 on, one for each call; one for all where it sizes a buffer" in sections(counts)[2]["for"]
    (fewest,) = obligations(("one buffer:T4",))
    assert "for" not in sections(fewest)[2]


def test_that_no_block_is_twice_in_the_table_is_assumed_of_writes_alone() -> None:
    twice = "  - no two runs share a row of the pool"
    assert twice in sections(T7.of(schemes.staged_write, "s", "write"))[2]["for"]
    assert twice not in sections(T7.of(schemes.staged_read, "s", "read"))[2]["for"]


def test_the_axioms_are_those_that_speak_of_the_schemes_operations() -> None:
    assert axioms(STAGED) == ("A1", "A2", "A3", "A4")
    assert axioms(NO_WAIT) == ("A1", "A2", "A3"), "nobody waits for a stream"
    assert axioms(T3.of(schemes.ring_read, "ring", "read")) == ("A1", "A2", "A3", "A5")
    assert axioms(T1.of(schemes.gather_read, "gather", "read")) == ("A1", "A2", "A3", "A5", "A6")
    assert axioms(T7.of(schemes.staged_read, "staged", "read")) == (), "of bounds, times play no part"
    (lemmas,) = obligations(("lemmas:L1",))
    assert axioms(lemmas) == ()


def test_every_axiom_has_its_sentence() -> None:
    named = set(re.findall(r'(?:Edge|Own)\("(\w+)"', getsource(module)))
    assert len(named) > 5
    assert named == set(module.AXIOMS)


def test_a_refuted_one_is_drawn_and_told_what_is_missing() -> None:
    _, head, found = sections(NO_WAIT)
    assert head == "staged without its wait.read:T1  no hazard: REFUTED, as expected"
    assert list(found) == ["claim", "for", "assumed", "asked", "broken by", "schedule", "wrong", "missing"]
    assert found["broken by"] == ["runs = runs pool[0].rows[0:1], 1 call"]
    assert found["schedule"][0].split() == ["host", "stream", "copy"]
    assert any("#" in line for line in found["schedule"][1:-1])
    assert joined(found["missing"]) == (
        "nothing orders the end of [step 0: Copy pool[0].rows[0:1] -> stage[0].rows[0:1] on stream copy] before the begin of "
        "[step 0: HostCopy stage[0].rows[0:1] -> out[0].rows[0:1]]: the host does not wait any of these would supply it, right "
        "before [step 0: HostCopy stage[0].rows[0:1] -> out[0].rows[0:1]]: the host waits for stream copy (SyncStream) a new "
        "event is recorded on stream copy right behind the first access, and the host waits for it (SyncEvent)"
    )


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (edited(schemes.ring_read, without(Named(SyncEvent))), "the host waits for event filled[0] (SyncEvent)"),
        (
            edited(schemes.gather_read, without(Named(WaitEvent, event="free"))),
            "stream compute waits for event free[0] (WaitEvent)",
        ),
    ],
)
def test_what_lost_its_wait_is_told_of_it_first(function: SchemeFunction, first: str) -> None:
    _, _, found = sections(T1.of(function, "s", "read", REFUTED))
    waits = found["missing"][[line.startswith("any of these") for line in found["missing"]].index(True) + 1 :]
    assert next(line.strip() for line in waits if "waits for" in line) == first


def test_wrong_rows_without_a_race_are_drawn_without_advice() -> None:
    (twice,) = obligations(("staged with a block twice in the table.write:T3",))
    _, _, found = sections(twice)
    assert list(found)[-3:] == ["broken by", "schedule", "wrong"]
    assert found["wrong"] == ["call 0: row 0, at pool[0].rows[0:1], holds row 1"]
    assert not any("#" in line for line in found["schedule"])


@pytest.mark.parametrize("verdict", [UNKNOWN, UNSUPPORTED])
def test_a_verdict_that_settles_nothing_has_a_reason(verdict: Verdict) -> None:
    judgement, head, found = sections(claim(verdict))
    assert head.endswith(f": {verdict.value}, expected PROVED")
    assert joined(found["why"]) == judgement.reason
    assert ("up to 3 rows" in judgement.reason) == (verdict is UNKNOWN)


def test_what_the_model_has_no_meaning_for_is_explained_too() -> None:
    def loop(runs: Runs) -> Any:
        return list(range(runs.number))

    def undeclared(runs: int) -> Any:
        return runs

    for function, why in ((loop, "a symbolic index is used as a concrete number"), (undeclared, "is declared as")):
        _, head, found = sections(T1.of(function, "mine"))
        assert head.endswith("UNSUPPORTED, expected PROVED")
        assert why in joined(found["why"])
        assert "assumed" not in found
