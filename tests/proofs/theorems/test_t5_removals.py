"""T5: the removal table has a row for every wait and record of every proved scheme, and a needless one turns it red."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kvstage_model import schemes
from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import Event, Operation, QueryEvent, RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.program import unroll
from kvstage_model.search.instances import instances
from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.catalogue.engine_patterns import polling_write
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.theorems.t5_removals import removals
from tests.support.loops import WAIT, Place, loop, staged

ORDERINGS = (SyncStream, RecordEvent, SyncEvent, WaitEvent, QueryEvent)
ALL = tuple(catalogue())
PROVED = [one for one in ALL if one.statement.theorem == "T1" and one.statement.expected is Verdict.PROVED]
ROWS = {one.statement.name for one in ALL if one.statement.theorem == "T1" and one.statement.expected is Verdict.REFUTED}


def places(function: SchemeFunction) -> Counter[tuple[Named, str]]:
    """The waits and records of a scheme, as its small instances issue them, by phase; and how often one step issues each."""
    most: Counter[tuple[Named, str]] = Counter()
    for calls, _ in instances(function):
        steps: dict[tuple[int, str, int], Counter[Named]] = {}
        for each in unroll(calls):
            if type(each.operation) in ORDERINGS:
                steps.setdefault((each.call, each.phase, each.step), Counter())[Named.of(each.operation)] += 1
        for (_, phase, _), issued in steps.items():
            for named, times in issued.items():
                most[named, phase] = max(most[named, phase], times)
    return most


@pytest.mark.parametrize("obligation", PROVED, ids=lambda obligation: obligation.statement.subject)
def test_every_wait_and_record_of_a_proved_scheme_has_a_row(obligation: Obligation) -> None:
    """Counted over what the schemes issue, of the whole catalogue. A name stands for one wait or record: so for one row."""
    found = places(obligation.subject)  # type: ignore[arg-type]
    assert set(found.values()) == {1}
    shared = Counter(named for named, _ in found)
    stated = obligation.statement
    for named, phase in found:
        where = f" in the {phase}" if shared[named] > 1 else ""
        assert f"{stated.scheme} without {named}{where}{stated.name.removeprefix(stated.scheme)}" in ROWS


def test_the_table_has_rows_for_calls_sessions_and_loops_that_poll() -> None:
    """What was once left out of it."""
    schemes_with_rows = {name.split(" without ")[0] for name in ROWS if " without " in name}
    assert schemes_with_rows >= {"ring with fresh events", "ring session", "ring that asks for free slots", "batches of two runs"}
    assert len(ROWS) > 90
    assert len(PROVED) > 30


def test_two_waits_of_one_name_are_two_rows() -> None:
    """One taken out with the other would show only that one of them is needed."""
    names = [each.statement.scheme for each in removals(polling_write, "polling", "write")]
    waits = {name for name in names if "SyncStream" in name}
    assert waits == {f"polling without SyncStream on stream copy in the {phase}" for phase in ("loop", "epilogue")}
    assert len(names) == len(set(names)) == 4


def waiting_twice(place: Place, i: int) -> Iterator[Operation]:
    """A right loop, and a wait more than it needs."""
    yield from staged(place, i)
    yield RecordEvent(Event("taken"), "copy")


def test_a_needless_record_is_not_as_expected() -> None:
    function = loop(waiting_twice)
    verdicts = {each.statement.scheme: judge(each) for each in removals(function, "loop", "read")}
    assert len(verdicts) == 2
    assert verdicts["loop without SyncStream on stream copy"].ok
    needless = verdicts["loop without RecordEvent of 'taken' on stream copy"]
    assert (needless.verdict, needless.ok) == (Verdict.PROVED, False)


def test_a_wait_of_one_phase_alone_is_taken_out() -> None:
    function = edited(schemes.direct_read, without(Named(SyncStream), "loop"))
    assert Named(SyncStream, "copy") in {named for named, _ in places(function)}
    gone = edited(schemes.direct_read, without(Named(SyncStream), "epilogue"))
    assert not places(gone)
    ended = loop(staged, epilogue=lambda place: (WAIT,))
    assert set(places(edited(ended, without(Named(SyncStream), "epilogue")))) == {(Named(SyncStream, "copy"), "loop")}
