"""False proofs that were found, each as the smallest loop of which T1 was PROVED though it races."""

from collections.abc import Callable, Iterator

import pytest

from kvstage_model.language.buffers import Buffer, Memory, overlap
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    Event,
    HostRead,
    HostWrite,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
)
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.ranges import Flags
from kvstage_model.language.scheme import Phase, PhaseNameError, Scheme, Session, once
from kvstage_model.ordering import axioms
from kvstage_model.symbolic import scheme_model
from kvstage_model.symbolic.scheme_model import Instance
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.z3_terms import Term
from kvstage_proofs.judging import judge as judging
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.solver import claimed
from tests.support.tiers import often

PROVED, REFUTED, UNSUPPORTED = Verdict.PROVED, Verdict.REFUTED, Verdict.UNSUPPORTED
STAGE, POOL = Buffer("stage", Memory.PINNED, 9, 1), Buffer("pool", Memory.DEVICE, 9, 1)
Answer = Callable[[Flags, Flags, int], tuple[int, int]]
"""What two queries of a step answer, from the flags that a scheme declares and its step."""

FORESEEN: dict[str, Answer] = {
    "a number": lambda free, other, i: (1, 1),
    "a number that follows from the step": lambda free, other, i: (min(i, 1), min(i, 1)),
    "the flag of another step": lambda free, other, i: (free(0), free(0)),
    "the opposite of a flag": lambda free, other, i: (1 - free(i), 1 - free(i)),
    "one flag for both": lambda free, other, i: (free(i), free(i)),
}


def asking(answer: Answer) -> Declared:
    """Copies on two streams, asks both whether they have ended, and reads what b brought where the answer of a is yes."""

    def scheme(n: int, free: Flags, other: Flags) -> Scheme:
        def step(i: int) -> Iterator[Operation]:
            answers = answer(free, other, i)
            for slot, stream in enumerate("ab"):
                yield Copy(stream, POOL.at(slot, 0, 1), STAGE.at(slot, 0, 1))
                yield RecordEvent(Event(stream), stream)
                yield QueryEvent(Event(stream), answers[slot])
            if answers[0] == 1:
                yield HostRead(STAGE.at(1, 0, 1))
            yield SyncStream("a")
            yield SyncStream("b")

        return Scheme("asking", (STAGE, POOL), n, step)

    return Declared(scheme, (Parameter("n", int), Parameter("free", Flags), Parameter("other", Flags)))


def test_with_an_answer_of_its_own_for_each_query_the_race_is_found() -> None:
    assert judge(T1.of(asking(lambda free, other, i: (free(i), other(i))), "loop")).verdict is REFUTED


@pytest.mark.parametrize("answer", FORESEEN.values(), ids=FORESEEN)
def test_an_answer_that_can_be_foreseen_is_unsupported(answer: Answer) -> None:
    """It was proved: where answers follow from other numbers, what a driver may do is left out."""
    judgement = judge(T1.of(asking(answer), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert "Flags" in judgement.reason


@pytest.mark.parametrize("answer", often(FORESEEN.values(), 2), ids=FORESEEN)
def test_without_the_check_of_answers_it_is_proved(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_model, "check_answers", lambda world, step, operations: None)
    assert judge(T1.of(asking(answer), "loop")).verdict is PROVED


def asking_in_two_loops(shared: bool) -> Declared:
    """One loop asks whether a has ended, the next one whether b has, and reads what a brought where the answer is yes."""

    def scheme(free: Flags, other: Flags) -> Scheme:
        def loop(slot: int, stream: str, flags: Flags) -> Callable[[int], Iterator[Operation]]:
            def step(i: int) -> Iterator[Operation]:
                yield Copy(stream, POOL.at(slot, 0, 1), STAGE.at(slot, 0, 1))
                yield RecordEvent(Event(stream), stream)
                yield QueryEvent(Event(stream), flags(i))
                if slot and flags(i) == 1:
                    yield HostRead(STAGE.at(0, 0, 1))

            return step

        second = Phase("two", 1, loop(1, "b", free if shared else other))
        end = once("end", SyncStream("a"), SyncStream("b"))
        return Session.of("asking", (STAGE, POOL), Phase("one", 1, loop(0, "a", free)), second, end)

    return Declared(scheme, (Parameter("free", Flags), Parameter("other", Flags)))


def test_one_flag_for_the_queries_of_two_loops_is_unsupported() -> None:
    """It was proved: a driver that said "not yet" to the first query and yes to the second one was left out."""
    assert judge(T1.of(asking_in_two_loops(shared=False), "loop")).verdict is REFUTED
    judgement = judge(T1.of(asking_in_two_loops(shared=True), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert judgement.reason.endswith(
        "phases 'one' and 'two' share the answers of 'free': declare another parameter of type Flags for one of them"
    )


def test_without_the_check_of_loops_it_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_model, "check_flags_of_phases", lambda phases: None)
    assert judge(T1.of(asking_in_two_loops(shared=True), "loop")).verdict is PROVED


def lending(taken: int) -> Declared:
    """Lends both rows of a slot, takes back so many of them, and writes the second one."""
    lent = Buffer("lent", Memory.PINNED, 1, 2)

    def step(i: int) -> Iterator[Operation]:
        yield Release(lent.at(0, 0, 2))
        yield Acquire(lent.at(0, 0, taken))
        yield HostWrite(lent.at(0, 1, 1))
        yield Acquire(lent.at(0, 0, 2))

    return Declared(lambda n: Scheme("lending", (lent,), n, step), (Parameter("n", int),))


def test_rows_that_were_not_taken_back_are_still_lent() -> None:
    """Taking one row back ended the whole release, and T1 was PROVED."""
    assert judge(T1.of(lending(taken=2), "loop")).verdict is PROVED
    assert judge(T1.of(lending(taken=1), "loop")).verdict is REFUTED


def test_an_axiom_that_takes_all_rows_back_with_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axioms, "covers", overlap)
    assert judge(T1.of(lending(taken=1), "loop")).verdict is PROVED


def frames(frame: int) -> Scheme:
    """One copy a call, with an event for each parity of a number: the next call may wait for the other one."""

    def step(_: int) -> Iterator[Operation]:
        yield SyncEvent(Event("sent", frame % 2))
        yield HostWrite(STAGE.at(0, 0, 1))
        yield Copy("copy", STAGE.at(0, 0, 1), POOL.at(0, 0, 1))
        yield RecordEvent(Event("sent", frame % 2), "copy")

    return Scheme("frames", (STAGE, POOL), 1, step)


FRAMES = Declared(frames, (Parameter("frame", int),))


def test_a_number_may_be_another_one_in_each_call() -> None:
    found = judge(T1.of(FRAMES, "frames"))
    assert found.verdict is REFUTED
    assert found.counterexample is not None
    assert found.counterexample.values == "frame = 0, then 1, 2 calls"


def test_were_it_the_same_in_all_calls_the_race_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_model, "same_in_all_calls", lambda function: frozenset({"frame"}))
    assert claimed(T1.queries(FRAMES)) is PROVED


def moving(count: int) -> Declared:
    """Copies so many rows from the second one on while the host writes three."""
    wide = Buffer("wide", Memory.PINNED, 1, 3)

    def step(i: int) -> Iterator[Operation]:
        yield Copy("s", wide.at(0, 1, count), POOL.at(0, 0, count))
        yield HostWrite(wide.at(0, 0, 3))
        yield SyncStream("s")

    return Declared(lambda n: Scheme("moving", (wide, POOL), n, step), (Parameter("n", int),))


def test_a_run_of_no_rows_meets_nothing() -> None:
    """Inside another run it counted as a row of it, and T1 was REFUTED."""
    assert judge(T1.of(moving(0), "loop")).verdict is PROVED
    assert judge(T1.of(moving(1), "loop")).verdict is REFUTED


def filled(*names: str) -> Declared:
    """Copies whose wait is left out in step 8, and fills of another slot, each with a wait, under these names."""

    def step(i: int) -> Iterator[Operation]:
        yield HostWrite(STAGE.at(0, 0, 1))
        yield Copy("s", STAGE.at(0, 0, 1), POOL.at(0, 0, 1))
        if i != 8:
            yield SyncStream("s")

    def scheme(n: int) -> Scheme:
        fills = (once(name, HostWrite(STAGE.at(1, 0, 1)), SyncStream("s")) for name in names)
        return Session.of("filled", (STAGE, POOL), Phase("loop", n, step), *fills)

    return Declared(scheme, (Parameter("n", int),))


def test_two_phases_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """T1 was PROVED: the fills shared their moments, so that nothing before them could be."""
    with pytest.raises(PhaseNameError, match="two phases of session 'filled' are called 'fill': give each a name of its own"):
        judge(T1.of(filled("fill", "fill"), "loop"))
    assert judge(T1.of(filled("fill", "fill again"), "loop")).verdict is not PROVED
    monkeypatch.setattr(Session, "__post_init__", lambda session: None)
    judgement = judge(T1.of(filled("fill", "fill"), "loop"))
    assert (judgement.verdict, judgement.reason) == (UNSUPPORTED, "two phases of a scheme have one name: loop, fill, fill")


def test_axioms_that_contradict_themselves_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here all that a call does once shares its moments, as phases of one name did."""

    def of_one_name(window: Window, call: int, phase: int, step: Term) -> list[Instance]:
        return window.add(f"once in {window.world.term(call)}", call, phase, window.world.index(step))

    monkeypatch.setattr(Window, "_put", of_one_name)
    monkeypatch.setattr(judging, "BEFORE_THE_SEARCH", 0)
    subject = filled("fill", "fill again")
    judgement = judge(T1.of(subject, "loop"))
    assert judgement.verdict is Verdict.UNKNOWN
    assert "the prover contradicts itself" in judgement.reason
    monkeypatch.setattr(judging, "_contradicted", lambda query, answer: False)
    assert judge(T1.of(subject, "loop")).verdict is PROVED
