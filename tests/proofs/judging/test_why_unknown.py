"""What may help where a claim is neither proved nor broken."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import z3

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import edited
from kvstage_model.language.operations import Copy, Event, HostWrite, Operation, RecordEvent, SyncEvent, WaitEvent
from kvstage_model.language.parameters import Declared, Parameter, SchemeFunction
from kvstage_model.language.partitions import by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.search.instances import instances
from kvstage_model.search.search import looked
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.judging.why_unknown import hint
from kvstage_proofs.obligation import Theorem
from kvstage_proofs.solvers.query import Query
from kvstage_proofs.targets.names import obligations
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.claims import PROVED, UNKNOWN, claim


def without_aims(kind: type) -> Callable[[Scheme], Scheme]:
    """An edit that takes the aims off the waits of one kind."""

    def aimless(operation: Operation) -> Operation:
        return (
            replace(operation, aim=None) if isinstance(operation, SyncEvent | WaitEvent) and type(operation) is kind else operation
        )

    return lambda scheme: replace(scheme, step=lambda i: map(aimless, scheme.step(i)))


RING = edited(schemes.ring_read, without_aims(SyncEvent))


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (RING, "SyncEvent filled[0]"),
        (edited(schemes.gather_read, without_aims(WaitEvent)), "WaitEvent free[0] on stream compute"),
    ],
)
@pytest.mark.parametrize("theorem", [T1, T3])
def test_a_wait_without_an_aim_is_named(function: SchemeFunction, named: str, theorem: Theorem[SchemeFunction]) -> None:
    text = hint(theorem.of(function, "mine"))
    assert text.startswith(f"; [{named}] has no aim: ")


def recording(first: str) -> Declared:
    """Waits for its copy by an event that is recorded on a stream before, too."""
    rows, device = (Buffer(name, memory, 1, 1) for name, memory in (("rows", Memory.PINNED), ("device", Memory.DEVICE)))

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(rows.at(0, 0, 1))
        yield Copy("a", rows.at(0, 0, 1), device.at(0, 0, 1))
        yield RecordEvent(Event("e"), first)
        yield RecordEvent(Event("e"), "a")
        yield SyncEvent(Event("e"), aim=i)

    return Declared(lambda n: Scheme("recording", (rows, device), n, step), (Parameter("n", int),))


def test_an_event_on_two_streams_is_named_and_how_far_numbers_were_looked_at() -> None:
    judgement = judge(T1.of(recording("b"), "mine"))
    assert judgement.verdict is UNKNOWN
    assert judgement.reason.endswith(
        "nothing wrong in every choice of numbers from 0 to 8 and the least three of each, with up to 2 calls; "
        "event e[0] is recorded on "
        "streams a and b: from such an event the proof draws nothing; record an event of its own on each stream"
    )
    assert judge(T1.of(recording("a"), "mine")).verdict is PROVED
    assert hint(T1.of(recording("a"), "mine")) == ""


def test_how_far_a_search_looks() -> None:
    """The words, against the numbers that are tried."""
    tried = [int(words.split(",")[0].removeprefix("n = ")) for _, words in instances(recording("a"))]
    assert set(tried) == set(range(9))
    assert looked(recording("a")).startswith("every choice of numbers from 0 to 8 ")
    for moving in (schemes.ring_read, schemes.staged_read, by_row, "lemmas"):
        assert looked(moving).startswith("every transfer of up to 3 rows in blocks of 1 and 2, ")


@pytest.mark.parametrize("function", [schemes.ring_read, schemes.gather_read, schemes.staged_read])
def test_a_scheme_whose_waits_have_aims_gets_none(function: SchemeFunction) -> None:
    assert hint(T1.of(function, "mine")) == ""


def test_what_does_not_rest_on_waits_gets_none() -> None:
    assert hint(T7.of(RING, "mine")) == ""
    assert hint(claim(UNKNOWN)) == ""
    for obligation in obligations(("by_block", "lemmas")):
        assert hint(obligation) == ""


def test_an_unknown_verdict_shows_how_far_it_looked_and_the_hint() -> None:
    context = z3.Context()
    true = z3.BoolVal(True, context)
    open_ = replace(T1.of(RING, "mine"), queries=lambda: iter([Query("a doubt", [], true, true, true)]))
    judgement = judge(open_)
    assert judgement.verdict is UNKNOWN
    looked, advice = judgement.reason.split("; [")
    assert looked.endswith(
        "in every transfer of up to 3 rows in blocks of 1 and 2, in plain ones of up to 8 rows, with up to 2 calls"
    )
    assert advice.startswith("SyncEvent filled[0]] has no aim: say which step's record it is meant for")
