"""Copies between two pools: the proofs hold, and fall where the address in the larger pool, or a hint, is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvstage_model.language.operations import Copy
from kvstage_model.language.paged_rows import IntoLarger
from kvstage_model.language.parameters import Distinct
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.pool_copy import copy_read
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Theorem, Verdict
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7


def with_target(place: Callable[[IntoLarger, int, int], tuple[int, int]]) -> Callable[..., Scheme]:
    """The copy into larger blocks whose every target is where `place(rows, slot, start)` puts it."""

    def scheme(rows: Distinct[IntoLarger]) -> Scheme:
        right = copy_read(rows)

        def step(i: int) -> list[Copy]:
            (copy,) = right.step(i)
            assert isinstance(copy, Copy)
            slot, start = place(rows, copy.target.slot, copy.target.start)
            return [replace(copy, target=copy.target.buffer.at(slot, start, copy.target.count))]

        return replace(right, step=step)

    return scheme


def into_the_first_part(rows: IntoLarger, slot: int, start: int) -> tuple[int, int]:
    """Forgets which part of the larger block it is."""
    return slot, start % rows.small.block_size


def a_row_late(_: IntoLarger, slot: int, start: int) -> tuple[int, int]:
    return slot, start + 1


@pytest.mark.extended
@pytest.mark.parametrize("place", [into_the_first_part, a_row_late])
def test_a_copy_to_another_place_is_refuted(place) -> None:
    assert judge(T3.of(with_target(place), "copy", "read")).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("place", "theorem", "verdict"), [(a_row_late, T7, Verdict.REFUTED), (lambda _, slot, start: (slot, start), T7, Verdict.PROVED)]
)
def test_a_copy_beyond_the_larger_block_is_refuted(place, theorem: Theorem, verdict: Verdict) -> None:
    assert judge(theorem.of(with_target(place), "copy", "read")).verdict is verdict


@pytest.mark.extended
def test_a_wrong_hint_of_what_a_step_moves_proves_nothing() -> None:
    """It is never trusted: no instance is wrong, so the verdict is UNKNOWN."""

    def scheme(rows: Distinct[IntoLarger]) -> Scheme:
        right = copy_read(rows)
        assert right.result is not None
        first = right.result.first
        assert first is not None
        return replace(right, result=replace(right.result, first=lambda i: first(i) + 1))

    assert judge(T3.of(scheme, "copy", "read")).verdict is Verdict.UNKNOWN
