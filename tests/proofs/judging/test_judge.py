"""The judge says PROVED where everything was ruled out, under premises that can hold, and nothing small disagrees."""

from collections.abc import Iterator
from itertools import product

import pytest
import z3

from kvstage_model import schemes
from kvstage_model.language.operations import HostWrite, Operation
from kvstage_model.language.parameters import ParameterError
from kvstage_model.ordering.trace import Trace
from kvstage_model.search.search import Counterexample
from kvstage_model.symbolic import scheme_model
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_proofs.judging.judge import BROKEN, judge, verdict_of
from kvstage_proofs.obligation import Obligation, Statement, Theorem, Verdict
from kvstage_proofs.solvers import z3_solver
from kvstage_proofs.solvers.query import Answer, Asked, Query
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.loops import WAIT, Place, loop

UNSAT, SAT, UNCLEAR = Answer
PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
EXAMPLE = Counterexample("n = 1, 1 call", 1, Trace((), ()), "wrong")
STATEMENT = Statement("loop", "read", "T0", "It is so.")


def one(answer: Answer, can_hold: Answer, must_hold: bool = False) -> Asked:
    return Asked(f"{answer.value}, {can_hold.value}, {must_hold}", answer, can_hold, must_hold, 0.0, 0)


GOOD, OPEN, NEVER, UNCLEAR_PREMISE = one(UNSAT, SAT), one(SAT, SAT), one(UNCLEAR, UNSAT), one(UNCLEAR, UNCLEAR)
NEVER_BUT_MUST, UNCLEAR_DOUBT = one(UNCLEAR, UNSAT, must_hold=True), one(UNCLEAR, SAT)


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        ([], VACUOUS),
        ([GOOD], PROVED),
        ([GOOD, GOOD], PROVED),
        ([NEVER], VACUOUS),
        ([NEVER, NEVER], VACUOUS),
        ([GOOD, NEVER], PROVED),
        ([GOOD, NEVER_BUT_MUST], VACUOUS),
        ([OPEN, NEVER_BUT_MUST], VACUOUS),
        ([GOOD, OPEN], UNKNOWN),
        ([OPEN, GOOD], UNKNOWN),
        ([GOOD, UNCLEAR_DOUBT], UNKNOWN),
        ([GOOD, UNCLEAR_PREMISE], UNKNOWN),
        ([NEVER, UNCLEAR_PREMISE], UNKNOWN),
    ],
)
def test_the_verdict_that_answers_allow(asked: list[Asked], verdict: Verdict) -> None:
    for order in (asked, list(reversed(asked))):
        found, why = verdict_of(tuple(order))
        assert found is verdict
        assert bool(why) == (verdict is not PROVED)


def test_proved_needs_every_answer_unsat_or_a_premise_that_never_holds() -> None:
    """All pairs of answers, against the definition."""
    every = [one(*parts) for parts in product(Answer, Answer, (False, True))]
    proved = 0
    for first, second in product(every, every):
        both = (first, second)
        right = any(a.proves for a in both) and all(a.proves or (a.can_hold is UNSAT and not a.must_hold) for a in both)
        assert (verdict_of(both)[0] is PROVED) == right
        proved += right
    assert proved > 4


def obligation(queries: Iterator[Query], found: Counterexample | None = None) -> Obligation:
    return Obligation(STATEMENT, lambda: queries, lambda most: found)


def doubts(*doubts: bool, must_hold: bool = False, premise: bool = True) -> Iterator[Query]:
    context = z3.Context()
    true = z3.BoolVal(True, context)
    for number, doubt in enumerate(doubts):
        yield Query(f"doubt {number}", [], z3.BoolVal(premise, context), z3.BoolVal(doubt, context), true, must_hold)


@pytest.mark.parametrize(
    ("queries", "found", "verdict"),
    [
        (lambda: doubts(), None, VACUOUS),
        (lambda: doubts(False, False), None, PROVED),
        (lambda: doubts(False, True), None, UNKNOWN),
        (lambda: doubts(False, True), EXAMPLE, REFUTED),
        (lambda: doubts(False, premise=False), None, VACUOUS),
        (lambda: doubts(False, premise=False), EXAMPLE, VACUOUS),
        (lambda: doubts(False, premise=False, must_hold=True), None, VACUOUS),
        (lambda: doubts(False), EXAMPLE, REFUTED),
    ],
)
def test_the_verdict_of_an_obligation(queries: type, found: Counterexample | None, verdict: Verdict) -> None:
    judgement = judge(obligation(queries(), found))
    assert judgement.verdict is verdict
    assert judgement.counterexample is (found if verdict is REFUTED else None)
    assert judgement.ok == (verdict is PROVED)


def test_what_a_small_instance_breaks_is_not_proved_whatever_the_solver_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that asks for the type of its index waits while it is proved, and not in a real run: if it were not refused."""
    monkeypatch.setattr(scheme_model, "demand_pure", lambda value: None)

    def step(place: Place, i: int) -> Iterator[Operation]:
        yield place.scribble(i)
        yield place.store(i)
        if not isinstance(i, int):
            yield WAIT

    judgement = judge(T1.of(loop(step), "asks for the type"))
    assert judgement.verdict is REFUTED
    assert judgement.reason == BROKEN
    assert all(asked.proves or asked.can_hold is UNSAT for asked in judgement.asked)


@pytest.mark.parametrize("reason", [UnsupportedError("no float()"), ParameterError("declare a range")])
def test_what_the_model_has_no_meaning_for_is_unsupported(reason: Exception) -> None:
    def queries() -> Iterator[Query]:
        yield from doubts(False)
        raise reason

    judgement = judge(obligation(queries(), EXAMPLE))
    assert (judgement.verdict, judgement.reason) == (UNSUPPORTED, str(reason))


def test_any_other_exception_is_no_verdict() -> None:
    def queries() -> Iterator[Query]:
        yield from doubts(False)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge(obligation(queries()))


def test_no_budget_makes_unknown_never_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3_solver, "RLIMIT", 100)
    judgement = judge(T1.of(schemes.staged_read, "staged", "read"))
    assert judgement.verdict is UNKNOWN
    assert "could not" in judgement.reason


def test_nothing_is_said_to_be_right_in_instances_that_nobody_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the solver can't even say whether the premises hold, the small instances are searched all the same."""
    monkeypatch.setattr(z3_solver, "solve", lambda assertions, seed=0: (UNCLEAR, 1))
    judgement = judge(obligation(doubts(True), EXAMPLE))
    assert (judgement.verdict, judgement.counterexample, judgement.reason) == (REFUTED, EXAMPLE, "")
    assert judge(obligation(doubts(True))).verdict is UNKNOWN


def test_a_theorem_is_about_the_subject_that_it_is_given() -> None:
    seen: list[str] = []

    def queries(subject: str) -> Iterator[Query]:
        seen.append(subject)
        yield from doubts(True)

    def search(subject: str, most: int | None) -> Counterexample | None:
        seen.append(subject)
        return EXAMPLE

    theorem = Theorem[str]("T0", "title", "It is so.", queries, search)
    judgement = judge(theorem.of("mine", "loop", "write"))
    assert judgement.verdict is REFUTED
    assert seen == ["mine", "mine"]
    assert judgement.statement.name == "loop.write:T0"


def test_what_must_be_refuted_is_searched_first_and_asked_only_where_nothing_is_found() -> None:
    seen: list[str] = []

    def queries(found: Counterexample | None) -> Iterator[Query]:
        seen.append("asked")
        yield from doubts(True)

    def search(found: Counterexample | None, most: int | None) -> Counterexample | None:
        seen.append("searched")
        return found

    theorem = Theorem[Counterexample | None]("T0", "title", "It is so.", queries, search)
    judgement = judge(theorem.of(EXAMPLE, "loop", expected=REFUTED))
    assert judgement.ok
    assert judgement.counterexample is EXAMPLE
    assert seen == ["searched"]
    assert judge(theorem.of(None, "loop", expected=REFUTED)).verdict is UNKNOWN
    assert "asked" in seen


def test_an_operation_that_never_exists_leaves_nothing_to_prove() -> None:
    def step(place: Place, i: int) -> Iterator[Operation]:
        if i < 0:
            yield HostWrite(place.staged(i))

    assert judge(T1.of(loop(step), "never")).verdict is VACUOUS
