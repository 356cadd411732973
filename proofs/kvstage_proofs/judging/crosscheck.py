"""The second solver: cvc5 must give z3's answer to each question that z3 was asked.

The two share no code. If z3 finds a contradiction, cvc5 must find it in those facts that z3 says contradict each other;
if z3 finds that a premise can hold, cvc5 must find that it holds with z3's values. Both answer the whole question, and take
cvc5 a hundredth of the time; if it does not find them so, it is asked the whole question.

What z3 says is believed only if cvc5 agrees; if they differ one of them is wrong, and nothing is known of the claim.
cvc5 is imported when it is first asked: without `--crosscheck` nothing needs it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Judgement, Verdict
from ..solvers.cvc5_solver import solve_smtlib, version
from ..solvers.evidence import core, witness
from ..solvers.query import Answer, Asked, Query


def crosschecked(judgement: Judgement, queries: Sequence[Query]) -> Judgement:
    """The judgement with cvc5's answers to its queries.

    If an answer differs from z3's the verdict is DISAGREE. If cvc5 can't say, what z3 proved becomes UNKNOWN; an
    instance that breaks a claim needs no solver, and stays REFUTED.
    """
    begun = time.perf_counter()
    pairs = [(first, second_opinion(query, first)) for query, first in zip(queries, judgement.asked, strict=True)]
    second = tuple(each for _, each in pairs)
    checked = replace(judgement, second=second, seconds=judgement.seconds + time.perf_counter() - begun)
    differ = [words for first, each in pairs for words in differences(first, each)]
    if differ:
        return replace(checked, verdict=Verdict.DISAGREE, reason="; ".join(differ))
    silent = [each.name for each in second if Answer.UNKNOWN in (each.can_hold, each.answer) and each.can_hold is not Answer.UNSAT]
    if silent and judgement.ok and judgement.verdict is not Verdict.REFUTED:
        reason = f"z3 alone says {judgement.verdict.value}: cvc5 can't answer {len(silent)} of its queries, first {silent[0]!r}"
        return replace(checked, verdict=Verdict.UNKNOWN, reason=reason)
    return checked


def second_opinion(query: Query, first: Asked) -> Asked:
    """cvc5's answers to a query: whether its premise can hold, and to its doubt if z3 was asked it.

    It is asked for what z3 says is enough first, see `solvers.evidence`: whether the premise holds with these values, or whether
    this part of the facts contradicts itself. If it does not say so too, it is asked the whole question.
    """
    begun = time.perf_counter()
    enough = None
    if first.can_hold is Answer.SAT:
        valued = witness([*query.premises, query.hint]) or witness(query.premises)
        enough = valued and query.with_logic(valued)
    elif first.can_hold is Answer.UNSAT:
        enough = _part(query, query.premises)
    can_hold, used = _opinion(first.can_hold, enough, query.premise_smt2)
    answer = Answer.UNKNOWN
    if first.can_hold is Answer.SAT:
        part = _part(query, query.negation) if first.answer is Answer.UNSAT else None
        answer, more = _opinion(first.answer, part, query.smt2)
        used += more
    return Asked(query.name, answer, can_hold, query.must_hold, time.perf_counter() - begun, used)


def _part(query: Query, assertions: list[Term]) -> str | None:
    """Those of the assertions that contradict each other, as text."""
    found = core(assertions)
    return None if found is None else query.text(found)


def _opinion(said: Answer, enough: str | None, whole: Callable[[], str]) -> tuple[Answer, int]:
    """cvc5's answer to whether the whole can hold: what z3 has `said`, if cvc5 says that of what is enough for it."""
    used = 0
    if enough is not None:
        answer, used = solve_smtlib(enough)
        if answer is said:
            return answer, used
    answer, more = solve_smtlib(whole())
    return answer, used + more


def differences(first: Asked, second: Asked) -> Iterator[str]:
    """Each question to which the solvers gave different answers, with both. An UNKNOWN differs from nothing."""
    for question, mine, other in (
        ("whether its premise can hold", first.can_hold, second.can_hold),
        ("its doubt", first.answer, second.answer),
    ):
        if {mine, other} == {Answer.SAT, Answer.UNSAT}:
            yield f"the solvers DISAGREE on {question}, of {first.name!r}: z3 says {mine.value}, cvc5 says {other.value}"


def summary(judgements: Sequence[Judgement]) -> str:
    """How many queries cvc5 agreed on, how long it took, and which took it longest."""
    pairs = [
        (judgement, first, second)
        for judgement in judgements
        for first, second in zip(judgement.asked, judgement.second, strict=False)
    ]
    if not pairs:
        return "cvc5 was asked nothing"
    agreed = sum((first.answer, first.can_hold) == (second.answer, second.can_hold) for _, first, second in pairs)
    seconds = sum(second.seconds for _, _, second in pairs)
    judgement, _, slowest = max(pairs, key=lambda pair: pair[2].seconds)
    return (
        f"cvc5 {version()} agreed on {agreed} of {len(pairs)} queries in {seconds:.0f} s of work; "
        f"slowest: {slowest.seconds:.1f} s, {judgement.statement.name}, {slowest.name!r}"
    )
