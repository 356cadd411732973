"""False proofs of loops that do something else than they did while they were proved: each keeps a state, or looks at objects."""

import pytest

from kvstage_model.symbolic import scheme_model
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.model.symbolic.test_purity import making, turning
from tests.support.impure import IMPURE, MAKERS

PROVED, UNSUPPORTED = Verdict.PROVED, Verdict.UNSUPPORTED
WITHOUT = (
    "list_of_the_module",
    "dict_of_the_module",
    "context_variable",
    "clock",
    "identity_of_a_number",
    "attribute_of_a_class",
    "slot",
)
"""A few that were PROVED, where nobody read their text."""


@pytest.mark.parametrize("name", WITHOUT)
def test_a_loop_that_counts_is_refused_and_was_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge(T1.of(turning(IMPURE[name]), "loop"))
    assert (judgement.verdict, ": " in judgement.reason) == (UNSUPPORTED, True)
    monkeypatch.setattr(scheme_model, "demand_pure", lambda value: None)
    assert judge(T1.of(turning(IMPURE[name]), "loop")).verdict is PROVED


def test_a_list_around_a_step_is_refused_and_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(T1.of(making(MAKERS["list_around"]), "loop")).verdict is UNSUPPORTED
    monkeypatch.setattr(scheme_model, "demand_pure", lambda value: None)
    assert judge(T1.of(making(MAKERS["list_around"]), "loop")).verdict is PROVED
