"""Judging: put an obligation's queries to the solver, search for a counterexample if one may exist, and say which it is."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kvstage_model.language.parameters import ParameterError
from kvstage_model.ordering.axioms import AXIOMS
from kvstage_model.search.faults import hazard, out_of_bounds, wrong_rows
from kvstage_model.search.search import LOOKED, looked
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.window import axiom

from ..obligation import Judgement, Obligation, Verdict
from ..solvers.query import Answer, Asked, Query
from ..solvers.z3_solver import Asking, solve
from .solvers_instance import broken
from .why_unknown import hint

Review: TypeAlias = Callable[[Judgement, Sequence[Query]], Judgement]
"""What is done with a judgement and the queries that were asked last, in the process that asked them."""

SMALLEST = 24
"""How many small instances may disagree with a proof: it costs little, and an unsound proof would not survive it."""
BROKEN = "the solver ruled everything out, and yet this instance breaks it: does a step depend on what ran before it?"

CONTRADICTED = (
    "what is assumed of {name!r} can hold, but not with the axioms, which order what happens and rule out no step: the prover "
    "contradicts itself here, so nothing is known; please report it"
)

FAULTS = {"T1": hazard, "T2": hazard, "T3": wrong_rows, "T7": out_of_bounds}
"""What breaks a theorem about schemes: what is looked for in an instance that the solver suggests."""

BEFORE_THE_SEARCH = 2
"""How often an open query is asked again with more facts before small instances are searched."""


def judge(obligation: Obligation, *reviews: Review) -> Judgement:
    """The verdict on one obligation. Only `unsat`, under a premise that can hold, proves, and no small instance may disagree.

    What must be REFUTED is searched for an instance first: one that breaks it needs no solver.
    """
    begun = time.perf_counter()
    asked, asking = list[tuple[Query, Asked]](), Asking()
    counterexample = None
    try:
        if obligation.statement.expected is Verdict.REFUTED:
            counterexample = obligation.search(None)
        if counterexample is None:
            asked = [(query, asking.ask(query)) for query in obligation.queries()]
        searched = obligation.statement.expected is Verdict.REFUTED
        for number, (query, answer) in enumerate(asked):
            if answer.open and counterexample is None:
                asked[number] = _widened(asking, query, answer, BEFORE_THE_SEARCH)
                if asked[number][1].open and not searched:
                    counterexample, searched = obligation.search(None), True
        for number, (query, answer) in enumerate(asked):
            if answer.open and counterexample is None:
                asked[number] = query, answer = _widened(asking, query, answer)
                fault = FAULTS.get(obligation.statement.theorem)
                if answer.open and fault is not None and callable(obligation.subject):
                    counterexample = broken(obligation.subject, query, fault)
    except (UnsupportedError, ParameterError) as reason:
        return Judgement(obligation.statement, Verdict.UNSUPPORTED, time.perf_counter() - begun, reason=str(reason))
    answers = tuple(answer for _, answer in asked)
    verdict, why = (Verdict.REFUTED, "") if counterexample is not None else verdict_of(answers)
    if verdict is Verdict.PROVED:
        dropped = next((query.name for query, answer in asked if _contradicted(query, answer)), None)
        counterexample = obligation.search(SMALLEST)
        if counterexample is not None:
            verdict, why = Verdict.REFUTED, BROKEN
        elif dropped is not None:
            verdict, why = Verdict.UNKNOWN, CONTRADICTED.format(name=dropped)
    elif verdict is Verdict.UNKNOWN and not searched and (counterexample := obligation.search(None)) is not None:
        verdict, why = Verdict.REFUTED, ""
    elif verdict is Verdict.UNKNOWN:
        why = verdict_of(answers, looked(obligation.subject))[1] + hint(obligation)
    judgement = Judgement(obligation.statement, verdict, time.perf_counter() - begun, answers, counterexample, why)
    for review in reviews:
        judgement = review(judgement, [query for query, _ in asked])
    return judgement


def _widened(asking: Asking, query: Query, answer: Asked, times: int | None = None) -> tuple[Query, Asked]:
    """A query that is open, asked again with more facts until it is not, or so many times."""
    while answer.open and query.strengthened is not None and times != 0:
        query = query.strengthened()
        answer = asking.ask(query).after(answer)
        times = None if times is None else times - 1
    return query, answer


def _contradicted(query: Query, answer: Asked) -> bool:
    """Whether a query was dropped, its premise never holding, for no other reason than the axioms.

    They are true of the order in which everything happens at its issue, whatever is issued: a premise, which is about
    indices, must hold with them or not at all.
    """
    signs = {axiom(name, query.premise.ctx).get_id() for name in AXIOMS}
    bare = [fact for fact in query.facts if fact.get_id() not in signs]
    if answer.can_hold is not Answer.UNSAT or len(bare) == len(query.facts):
        return False
    return solve([*bare, query.premise])[0] is not Answer.UNSAT


def verdict_of(asked: Sequence[Asked], far: str = LOOKED) -> tuple[Verdict, str]:
    """The verdict that the answers alone allow, and the reason if it is not PROVED; `far` says how far a search looked."""
    if not asked:
        return Verdict.VACUOUS, "there is nothing to ask: no operation or pair of operations that the claim speaks of"
    unclear = [one for one in asked if one.can_hold is Answer.UNKNOWN]
    if unclear:
        name = unclear[0].name
        return Verdict.UNKNOWN, f"the solver could not say whether the assumptions of {name!r} can hold; nothing wrong in {far}"
    never = [one for one in asked if one.can_hold is Answer.UNSAT]
    needed = [one for one in never if one.must_hold] or (never if len(never) == len(asked) else [])
    if needed:
        return Verdict.VACUOUS, f"no case in which {needed[0].name!r} could arise"
    met = [one for one in asked if one.can_hold is Answer.SAT]
    open_ = [one for one in met if one.open]
    if open_:
        name, answer = open_[0].name, open_[0].answer.value
        return Verdict.UNKNOWN, f"{name!r} could not be ruled out ({answer}); nothing wrong in {far}"
    return Verdict.PROVED, ""
