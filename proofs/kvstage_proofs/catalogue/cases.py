"""The cases' obligations: each bug must be REFUTED, each fix PROVED, and a fix that was not enough REFUTED, too."""

from collections.abc import Iterator

from kvstage_model.cases import CASES, Case
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel

from ..obligation import Obligation, Theorem, Verdict
from ..theorems.t1_no_hazard import T1
from ..theorems.t3_result import T3
from ..theorems.t6_no_deadlock import T6
from ..theorems.t7_bounds import T7

PREFIX = "case:"
"""What names of cases begin with: `case:H15`."""
THEOREMS: dict[str, Theorem[SchemeFunction]] = {theorem.name: theorem for theorem in (T1, T3, T6, T7)}


def obligations() -> Iterator[Obligation]:
    """All of them, case by case."""
    for case in CASES.values():
        yield from of_case(case)


def of_case(case: Case) -> Iterator[Obligation]:
    """The bug, which breaks its theorem alone, and each fix."""
    name = f"{PREFIX}{case.name}"
    yield THEOREMS[case.theorem].of(case.bug, name, "bug", Verdict.REFUTED)
    if case.theorem != T1.name:
        yield T1.of(case.bug, name, "bug")  # it looks like a race, and is none
    complete = 0
    for fix in case.fixes:
        complete += not fix.incomplete
        if fix.incomplete:
            yield THEOREMS[case.theorem].of(fix.scheme, name, "first fix", Verdict.REFUTED)
            continue
        direction = "fix" if complete == 1 else f"fix {complete}"
        for theorem in (T1, T3, T6, T7):
            if theorem is not T3 or _states_a_result(fix.scheme):
                yield theorem.of(fix.scheme, name, direction)


def _states_a_result(function: SchemeFunction) -> bool:
    try:
        model = SchemeModel(function)
        (stated,) = model.value(model.world.integer("call"), lambda scheme: (scheme.result is not None,))
    except UnsupportedError:
        return False  # each of its obligations says why
    return stated
