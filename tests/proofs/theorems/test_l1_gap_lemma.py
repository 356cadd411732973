"""L1: every lemma is put to the solver, and a false one is not proved."""

from collections.abc import Iterator
from typing import Any

import z3

from kvstage_model.symbolic import division
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.l1_gap_lemma import L1, queries


def test_every_lemma_is_proved() -> None:
    names = [name for name, _ in division.lemmas(z3.Context())]
    judgement = judge(L1.of(division.lemmas, "lemmas"))
    assert [asked.name for asked in judgement.asked] == names
    assert len(names) == 4
    assert judgement.verdict is Verdict.PROVED


def test_one_false_lemma_among_true_ones_is_not_proved() -> None:
    def too_much(context: z3.Context) -> Iterator[tuple[str, Any]]:
        yield from division.lemmas(context)
        d, a, b = z3.Ints("d a b", context)
        yield "products lie more than d apart", z3.Implies(z3.And(d >= 1, a < b), a * d + d < b * d)

    assert judge(L1.of(too_much, "lemmas")).verdict is Verdict.UNKNOWN


def test_no_lemma_is_vacuous() -> None:
    assert judge(L1.of(lambda context: iter(()), "lemmas")).verdict is Verdict.VACUOUS
    assert list(queries(lambda context: iter(()))) == []
