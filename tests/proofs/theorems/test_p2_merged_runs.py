"""P2 holds for the fold that `merged` uses, and falls for every fold that is wrong in one way."""

from dataclasses import replace
from typing import Any

import pytest

from kvstage_model.language.merged_runs import joined, joins
from kvstage_model.language.partitions import Run
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.p2_merged_runs import P2, Fold


def verdict(fold: Fold) -> Verdict:
    return judge(P2.of(fold, "merged")).verdict


def test_merged_runs_are_proved() -> None:
    judgement = judge(P2.of(Fold(), "merged"))
    assert judgement.verdict is Verdict.PROVED
    assert len(judgement.asked) == 8


def one_too_many(last: Run, following: Run) -> Run:
    return replace(joined(last, following), count=last.count + following.count + 1)


def forgets_the_pool(last: Run, following: Run, most: int) -> Any:
    return (last.position + last.count == following.position) & (last.count + following.count <= most)


def forgets_the_transfer(last: Run, following: Run, most: int) -> Any:
    return (last.start + last.count == following.start) & (last.count + following.count <= most)


def one_longer(last: Run, following: Run, most: int) -> Any:
    return joins(last, following, most + 1)


def without_its_block(run: Run, block_size: int) -> Run:
    return Run(run.position, run.count, 0, run.start)


@pytest.mark.parametrize(
    "fold",
    [
        Fold(joined=one_too_many),
        Fold(joined=lambda last, following: replace(last, count=following.count)),
        Fold(joined=lambda last, following: replace(joined(last, following), start=following.start)),
        Fold(joins=forgets_the_pool),
        Fold(joins=forgets_the_transfer),
        Fold(joins=one_longer),
        Fold(in_one_slot=without_its_block),
    ],
)
def test_a_wrong_fold_is_not(fold: Fold) -> None:
    assert verdict(fold) is Verdict.UNKNOWN
