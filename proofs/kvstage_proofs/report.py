"""What people and programs read of judgements: text lines with a summary, and JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from .crosscheck import version as cvc5_version
from .obligation import Judgement, Statement, Verdict
from .query import Answer, Asked

VERSION = 1
"""Of the JSON format."""

GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[0m"


@dataclass(frozen=True)
class Text:
    """The report as text: columns wide enough for all of `statements`, colours where `coloured`."""

    statements: Sequence[Statement]
    coloured: bool = False

    def line(self, judgement: Judgement) -> str:
        """One obligation: verdict, name, what it says, queries, seconds, and what was expected where that is something else."""
        statement, verdict = judgement.statement, judgement.verdict
        parts = [
            self._in_colour(judgement, f"{verdict.value:<{max(len(each.value) for each in Verdict)}}"),
            f"{statement.name:<{max(len(each.name) for each in self.statements)}}",
            f"{statement.title:<{max(len(each.title) for each in self.statements)}}",
            f"{counted(len(judgement.asked), 'query', 'queries'):>11}",
            f"{judgement.seconds:5.1f} s",
        ]
        if judgement.counterexample is not None:
            parts.append(f"in {counted(judgement.counterexample.steps, 'step', 'steps')}")
        if not judgement.ok:
            parts.append(self._in_colour(judgement, f"<- expected {statement.expected.value}"))
        return "  ".join(parts).rstrip()

    def details(self, judgement: Judgement, schedule: bool) -> Iterator[str]:
        """The lines below it: the reason where there is one, and the counterexample where the `schedule` is wanted."""
        if judgement.reason:
            yield f"    {judgement.reason}"
        if schedule and judgement.counterexample is not None:
            yield from (f"    {line}" for line in judgement.counterexample.lines())

    def _in_colour(self, judgement: Judgement, text: str) -> str:
        if not self.coloured:
            return text
        colour = GREEN if judgement.ok else YELLOW if judgement.verdict is Verdict.UNKNOWN else RED
        return f"{colour}{text}{PLAIN}"


def summary(judgements: Sequence[Judgement], seconds: float) -> str:
    """All in one line. `seconds` is the time that the run took."""
    right = Counter(judgement.verdict for judgement in judgements if judgement.ok)
    wrong = Counter(judgement.verdict for judgement in judgements if not judgement.ok)
    parts = [f"{_counts(right)} as expected"] if right else []
    parts += [f"NOT as expected: {_counts(wrong)}"] if wrong else []
    work = sum(judgement.seconds for judgement in judgements)
    number = counted(len(judgements), "obligation", "obligations")
    return f"{number}: {'; '.join(parts) or 'nothing was judged'}; {work:.0f} s of work in {seconds:.0f} s"


def _counts(verdicts: Counter[Verdict]) -> str:
    return ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdict in verdicts)


def counted(number: int, one: str, many: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {one if number == 1 else many}"


def as_json(judgements: Sequence[Judgement]) -> str:
    """The report for programs, `VERSION` 1. `ok` is true where each obligation got the verdict that it must get."""
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
    """What each solver said to all the queries: `unsat` where it refuted each doubt that it was asked."""
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

    Queries whose premise can never hold were not asked any further; where that is all of them, nothing is known.
    """
    answers = {one.answer for one in asked if one.can_hold is not Answer.UNSAT}
    return next((answer for answer in (Answer.SAT, Answer.UNKNOWN, Answer.UNSAT) if answer in answers), Answer.UNKNOWN)
