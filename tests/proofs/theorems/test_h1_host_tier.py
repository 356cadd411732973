"""H1: the tier's own rules are proved, each wrong rule is refuted, and what only wastes a copy is not."""

from dataclasses import replace

import pytest

from kvstage_model.tier.generations import Mirror, still_right
from kvstage_proofs.catalogue.host_tier import BROKEN
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import h1_host_tier
from kvstage_proofs.theorems.h1_host_tier import H1, Rules
from tests.support.solver import claimed


def test_the_rules_are_proved() -> None:
    judgement = judge(H1.of(Rules(), "host tier"))
    assert judgement.verdict is Verdict.PROVED
    assert len(judgement.asked) > 40


@pytest.mark.parametrize("rules", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_rule_is_refuted_and_the_solver_alone_does_not_prove_it(rules: Rules) -> None:
    judgement = judge(H1.of(rules, "host tier", expected=Verdict.REFUTED))
    assert judgement.ok
    assert judgement.counterexample is not None
    assert 3 <= judgement.counterexample.steps <= 5
    assert claimed(h1_host_tier.queries(rules)) is Verdict.UNKNOWN


def test_a_mirror_that_keeps_its_old_generation_moves_more_and_is_right() -> None:
    """What was right stays right: a rule that only wastes copies is not refuted, and the proof does not depend on it."""

    def lazy(mirror: Mirror, number: int, block: object, wanted: int) -> Mirror:
        right = still_right(mirror, number, block)  # type: ignore[arg-type]
        return Mirror(number, mirror.generation, right) if mirror.block == number else Mirror(number, block.generation, wanted)  # type: ignore[attr-defined]

    assert judge(H1.of(replace(Rules(), mirrored=lazy), "lazy")).verdict is Verdict.PROVED
