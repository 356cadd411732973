"""Traps of waits: (1), (2), (3) and (9) of those that gave a false verdict in a prototype of the prover, each with a twin."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import z3

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import Copy, Event, Operation, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t1_no_hazard
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.loops import WAIT, Place, loop
from tests.support.solver import claimed

PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED
FILLED = Event("filled")

# -- (1) what a wait is meant for, taken for granted


def first_record_is_missing(place: Place, i: int) -> Iterator[Operation]:
    """Each wait aims at its own step's record; the first step has none."""
    yield place.fetch(i)
    if i > 0:
        yield RecordEvent(FILLED, "copy")
    yield SyncEvent(FILLED, aim=i)
    yield place.take(i)


def aims_before_step_0(place: Place, i: int) -> Iterator[Operation]:
    """Waits aim two steps back, where the first two steps have none. What each of them covers is its own step's record."""
    yield place.fetch(i)
    yield RecordEvent(Event("filled", i % 2), "copy")
    yield SyncEvent(Event("filled", i % 2), aim=i - 2)
    yield place.take(i)


@pytest.fixture
def all_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in a window exists: as a prototype took the record for granted that a wait is meant for."""
    real = Window.facts

    def facts(window: Window) -> list[Any]:
        return [*real(window), *(instance.exists for instance in window.instances)]

    monkeypatch.setattr(Window, "facts", facts)


def test_a_wait_whose_record_is_not_there_orders_nothing() -> None:
    judgement = judge(T1.of(loop(first_record_is_missing), "loop"))
    assert judgement.verdict is REFUTED
    assert judgement.counterexample is not None
    assert "step 0: Copy" in judgement.counterexample.wrong


@pytest.mark.usefixtures("all_exist")
def test_were_all_of_a_window_to_exist_the_first_step_would_go_unseen() -> None:
    assert claimed(t1_no_hazard.queries(loop(first_record_is_missing))) is PROVED


def test_an_aim_out_of_range_is_no_reason_for_a_verdict() -> None:
    """The record that the wait covers is its own step's, whatever it says it aims at: the aim is a hint."""
    assert judge(T1.of(loop(aims_before_step_0), "loop")).verdict is PROVED
    lost = edited(loop(aims_before_step_0), without(Named(RecordEvent)))
    assert judge(T1.of(lost, "loop")).verdict is REFUTED


# -- (2) identity of an operation by its label


def two_alike(place: Place, i: int) -> Iterator[Operation]:
    """Two copies of one step, alike but for their streams and sources, into one slot."""
    yield place.fetch(i, stream="a")
    yield Copy("b", place.scratched(i), place.staged(i))
    yield SyncStream("a")
    yield SyncStream("b")
    yield place.take(i)


def test_two_operations_that_look_alike_are_two() -> None:
    """A prototype told operations apart by kind and step: a copy could not race with another copy of its own step."""
    assert judge(T1.of(loop(two_alike), "loop")).verdict is REFUTED


def test_told_apart_by_their_labels_the_race_of_two_copies_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Window.before

    def before(window: Window, first: Instance, second: Instance) -> Any:
        alike = type(first.operation) is type(second.operation) and window.instances
        one_label = z3.And(z3.BoolVal(bool(alike), window.world.context), first.step == second.step, first.call == second.call)
        return z3.And(real(window, first, second), z3.Not(one_label))

    monkeypatch.setattr(Window, "before", before)
    assert claimed(t1_no_hazard.queries(loop(two_alike))) is PROVED


# -- (3) one event recorded on two streams


def recorded_on_two_streams(place: Place, i: int) -> Iterator[Operation]:
    """The last record is that of stream b: the wait says nothing of the copy on stream a."""
    yield place.fetch(i, stream="a")
    yield RecordEvent(FILLED, "a")
    yield Copy("b", place.pooled(i), place.scratched(i))
    yield RecordEvent(FILLED, "b")
    yield SyncEvent(FILLED, aim=i)
    yield place.take(i)


def recorded_under_two_names(place: Place, i: int) -> Iterator[Operation]:
    """The same, where the wait is for the event of stream a, and each stream has one of its own."""
    yield place.fetch(i, stream="a")
    yield RecordEvent(FILLED, "a")
    yield SyncEvent(FILLED, aim=i)
    yield Copy("b", place.pooled(i), place.scratched(i))
    yield RecordEvent(Event("scratched"), "b")
    yield SyncEvent(Event("scratched"), aim=i)
    yield place.take(i)


def test_of_an_event_on_two_streams_the_last_record_alone_counts() -> None:
    judgement = judge(T1.of(loop(recorded_on_two_streams), "loop"))
    assert judgement.verdict is REFUTED
    assert judgement.counterexample is not None
    assert "on stream a" in judgement.counterexample.wrong
    assert judge(T1.of(loop(recorded_under_two_names), "loop")).verdict is PROVED


def test_were_every_record_to_count_its_race_would_be_proved_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchemeModel, "on_one_stream", lambda model, record: True)
    assert claimed(t1_no_hazard.queries(loop(recorded_on_two_streams))) is PROVED


# -- (9) "the n-th wait" of a step with branches


def branching(place: Place, i: int) -> Iterator[Operation]:
    """The wait that counts is the first one on even steps, and the second one on odd steps."""
    yield place.scribble(i)
    yield place.store(i)
    if i % 2 == 1:
        yield SyncStream("another")
    yield WAIT


def without_the_first(scheme: Scheme) -> Scheme:
    def step(i: int) -> Iterator[Operation]:
        listed = list(scheme.step(i))
        first = next(operation for operation in listed if isinstance(operation, SyncStream))
        yield from (operation for operation in listed if operation is not first)

    return replace(scheme, step=step)


def test_a_wait_that_is_taken_out_by_name_is_gone_on_every_path() -> None:
    function = edited(loop(branching), without(Named(SyncStream, "copy")))
    assert judge(T1.of(function, "loop")).verdict is REFUTED
    assert streams(function) == [[], ["another"]]


def streams(function: SchemeFunction) -> list[list[str]]:
    """The streams that steps 0 and 1 of a transfer of four rows wait for."""
    scheme = function(runs=by_row(PagedRows(lambda k: k, 4, 1, 0, 4)))
    return [[operation.stream for operation in scheme.step(i) if isinstance(operation, SyncStream)] for i in (0, 1)]


def test_taken_out_by_number_another_one_is_gone_on_each_path() -> None:
    assert streams(edited(loop(branching), without_the_first)) == [[], ["copy"]]
