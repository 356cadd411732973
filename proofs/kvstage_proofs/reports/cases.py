"""The cases as people read them: a table of verdicts, and a page with each bug, its missing edge and its fix."""

from collections.abc import Iterator, Sequence
from inspect import getdoc

from kvstage_model.cases import CASES, INSTANCES, OUT_OF_REACH, Case
from kvstage_model.cases.case import Edge

from ..catalogue.cases import PREFIX
from ..obligation import Judgement

INTRODUCTION = """\
Staging bugs of serving engines, from their public reports, reduced to the loop that went wrong. `kvstage prove cases` refutes
each bug and proves each fix for all sizes; `kvstage explain case:H15` tells one; `kvstage cases --like file.py:scheme` names
those with the same kind of race as a scheme of yours that is refuted. Made by `kvstage cases --page` from `kvstage_model/cases`.
""".splitlines()
ADDING = """\
Write the loop of the report as a scheme ([schemes.md](schemes.md)) with one buffer for each piece of memory and one row for
each transfer, and beside it the loop with its fix, in the file of `kvstage_model/cases` that is about the missing edge. Enter
it in `CASES` there, with the reports, the agents, and the edge in words. `kvstage prove case:NAME` must refute the bug and
prove the fix.
""".splitlines()


def table(judgements: Sequence[Judgement]) -> Iterator[str]:
    """A line for each case that was judged: where it was reported, the verdicts, seconds, and the edge that was missing."""
    found: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.statement.scheme.startswith(PREFIX):
            found.setdefault(judgement.statement.scheme.removeprefix(PREFIX), []).append(judgement)
    width = max((len(_project(CASES[name])) for name in found), default=0)
    for name, judged in found.items():
        bug = next(each for each in judged if each.statement.theorem == CASES[name].theorem)
        fixed = sorted({each.verdict.value for each in judged if each.statement.direction.startswith("fix")})
        seconds = sum(each.seconds for each in judged)
        verdicts = f"bug {bug.statement.theorem} {bug.verdict.value}, fix {' and '.join(fixed)}"
        yield f"{name:<4} {_project(CASES[name]):<{width}}  {verdicts:<28} {seconds:5.1f} s  {CASES[name].edge.value}"


def _project(case: Case) -> str:
    return case.reports[0]


def page() -> Iterator[str]:
    """docs/cases.md, line by line."""
    yield "# Public bugs, each refuted, each fix proved"
    yield ""
    yield from INTRODUCTION
    for edge in Edge:
        cases = [case for case in CASES.values() if case.edge is edge]
        if cases:
            yield from ("", f"## {edge.value[0].upper()}{edge.value[1:]}")
        for case in cases:
            yield from _told(case)
    yield from ("", "## Instances", "", "| report | case | how it shows there |", "|---|---|---|")
    yield from (f"| {name} | [{of}](#{_anchor(CASES[of])}) | {how} |" for name, (of, how) in INSTANCES.items())
    yield from ("", "## Out of reach", "", "A scheme with such a fault may be PROVED: the model does not see it.", "")
    yield from ("| report | why |", "|---|---|")
    yield from (f"| {name} | {why} |" for name, why in OUT_OF_REACH.items())
    yield from ("", "## Add a case", "")
    yield from ADDING


def _told(case: Case) -> Iterator[str]:
    yield from ("", f"### {_heading(case)}", "")
    yield f"{', '.join(case.reports)}. Agents: {', '.join(case.agents)}."
    yield ""
    yield f"- the loop: {_words(case.bug)}"
    yield f"- missing: {case.missing}"
    for fix in case.fixes:
        yield f"- {'first fix, not enough' if fix.incomplete else 'fix'}: {fix.words}. {_words(fix.scheme)}"


def _words(scheme: object) -> str:
    """The first sentence of a scheme's docstring, on one line."""
    return " ".join((getdoc(scheme) or "").split("\n\n")[0].split())


def _heading(case: Case) -> str:
    return f"{case.name}: {case.title}"


def _anchor(case: Case) -> str:
    kept = "".join(c for c in _heading(case).lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")
