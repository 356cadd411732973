"""Judgements as programs read them: JSON."""

import json
from collections.abc import Sequence
from typing import Any

import z3

from ..obligation import Judgement
from ..solvers.cvc5_solver import version as cvc5_version
from ..solvers.query import Answer, Asked

VERSION = 1
"""Of the JSON format."""


def as_json(judgements: Sequence[Judgement]) -> str:
    """The report for programs, `VERSION` 1. `ok` is true if each obligation got the verdict that it must get."""
    ok = bool(judgements) and all(judgement.ok for judgement in judgements)
    report = {"version": VERSION, "ok": ok, "obligations": [_entry(judgement) for judgement in judgements]}
    return json.dumps(report, indent=2) + "\n"


def _entry(judgement: Judgement) -> dict[str, Any]:
    statement, found = judgement.statement, judgement.counterexample
    return {
        "name": statement.name,
        "scheme": statement.scheme,
        "direction": statement.direction,
        "theorem": statement.theorem,
        "claim": statement.claim,
        "verdict": judgement.verdict.value,
        "expected": statement.expected.value,
        "ok": judgement.ok,
        "solvers": _solvers(judgement),
        "seconds": round(judgement.seconds, 3),
        "reason": judgement.reason or None,
        "counterexample": None
        if found is None
        else {"instance": found.values, "steps": found.steps, "schedule": list(found.schedule), "wrong": found.wrong},
    }


def _solvers(judgement: Judgement) -> dict[str, Any]:
    """What each solver said to all the queries: `unsat` if it refuted each doubt that it was asked."""
    solvers: dict[str, Any] = {}
    if judgement.asked:
        solvers["z3"] = {**_solver(judgement.asked), "rlimit": judgement.rlimit, "version": z3.get_version_string()}
    if judgement.second:
        solvers["cvc5"] = {**_solver(judgement.second), "version": cvc5_version()}
    return solvers


def _solver(asked: Sequence[Asked]) -> dict[str, Any]:
    return {"answer": overall(asked).value, "seconds": round(sum(one.seconds for one in asked), 3)}


def overall(asked: Sequence[Asked]) -> Answer:
    """One answer for many: a doubt that holds outweighs one that is open, and both outweigh those that were refuted.

    Queries whose premise can never hold were not asked any further; if that is all of them, nothing is known.
    """
    answers = {one.answer for one in asked if one.can_hold is not Answer.UNSAT}
    return next((answer for answer in (Answer.SAT, Answer.UNKNOWN, Answer.UNSAT) if answer in answers), Answer.UNKNOWN)
