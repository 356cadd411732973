"""Judging: put an obligation's queries to the solver, search for a counterexample where one may exist, and say which it is."""

import time

from kvstage_model.parameters import ParameterError
from kvstage_model.search import LOOKED
from kvstage_model.symbolic import UnsupportedError

from .obligation import Judgement, Obligation, Verdict
from .query import Answer, Asked, ask

BROKEN = "the solver ruled everything out, and yet this instance breaks it: does a step depend on what ran before it?"


def judge(obligation: Obligation) -> Judgement:
    """The verdict on one obligation. Only `unsat`, under a premise that can hold, proves, and no small instance may disagree."""
    begun = time.perf_counter()
    try:
        asked = tuple(ask(query) for query in obligation.queries())
    except (UnsupportedError, ParameterError) as reason:
        return Judgement(obligation.statement, Verdict.UNSUPPORTED, time.perf_counter() - begun, reason=str(reason))
    verdict, why = verdict_of(asked)
    counterexample = None
    if verdict in (Verdict.UNKNOWN, Verdict.PROVED):
        counterexample = obligation.search()
        if counterexample is not None:
            verdict, why = Verdict.REFUTED, BROKEN if verdict is Verdict.PROVED else ""
    return Judgement(obligation.statement, verdict, time.perf_counter() - begun, asked, counterexample, why)


def verdict_of(asked: tuple[Asked, ...]) -> tuple[Verdict, str]:
    """The verdict that the answers alone allow, and the reason where it is not PROVED."""
    if not asked:
        return Verdict.VACUOUS, "there is nothing to ask: no operation or pair of operations that the claim speaks of"
    unclear = [one for one in asked if one.can_hold is Answer.UNKNOWN]
    if unclear:
        name = unclear[0].name
        return Verdict.UNKNOWN, f"the solver could not say whether the assumptions of {name!r} can hold; nothing wrong in {LOOKED}"
    never = [one for one in asked if one.can_hold is Answer.UNSAT]
    needed = [one for one in never if one.must_hold] or (never if len(never) == len(asked) else [])
    if needed:
        return Verdict.VACUOUS, f"no case in which {needed[0].name!r} could arise"
    met = [one for one in asked if one.can_hold is Answer.SAT]
    open_ = [one for one in met if one.answer is not Answer.UNSAT]
    if open_:
        name, answer = open_[0].name, open_[0].answer.value
        return Verdict.UNKNOWN, f"{name!r} could not be ruled out ({answer}); nothing wrong in {LOOKED}"
    return Verdict.PROVED, ""
