"""Medians, noise bands, and what is claimed from them: samples made by hand."""

from typing import Any

import pytest
import torch

from bench.replay import FLAT, Recorded, Recording, Sample
from bench.rounds import Leg, band, measure, order
from kvstage import Stats

RECORDING = Recording("a leg", (Recorded(0, 8, (), (1.0,)), Recorded(8, 8, (), (1.0,))), 0, (torch.zeros(16, 1),), 1.0)
NOTHING = (0.0, 0.0)


def leg(scheme: str, seconds: float, *pairs: tuple[float, float]) -> Leg:
    return Leg(RECORDING, scheme, [Sample((seconds, 0.0), NOTHING, Stats())], list(pairs))


def test_a_leg_is_the_median_of_its_samples() -> None:
    samples = [((1.0, 5.0), (0.5, 1.0)), ((2.0, 1.0), (0.0, 0.0)), ((9.0, 3.0), (4.0, 4.0))]
    found = Leg(RECORDING, "direct", [Sample(seconds, waiting, Stats(copies=3)) for seconds, waiting in samples])
    assert (found.totals, found.seconds, found.waiting, found.points) == ([6.0, 3.0, 12.0], 6.0, 1.5, [2.0, 3.0])
    assert found.stats.copies == 3


def test_the_band_is_the_widest_pair_and_per_row_borrows_the_widest_leg_s() -> None:
    legs = [leg("per_row", 9.0), leg("per_block", 1.0, (1.0, 1.25), (3.0, 2.0)), leg("direct", 1.0, (1.0, 1.0))]
    assert [band(legs, each) for each in legs] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [(2.0, 1.0, "quicker"), (1.3, 1.0, "alike"), (1.0, 1.3, "alike"), (1.0, 2.0, "slower"), (1.5, 1.0, "alike")],
)
def test_no_difference_inside_the_wider_band_is_claimed(first: float, second: float, word: str) -> None:
    for pairs in (((1.0, 1.5), (1.0, 1.0)), ((1.0, 1.0), (1.5, 1.0))):
        legs = [leg(FLAT, 0.1), leg("per_block", first, pairs[0]), leg("direct", second, pairs[1])]
        assert order(legs) == [("per_block", ""), ("direct", word)]
    quiet = [leg("per_block", first, (1.0, 1.0)), leg("direct", second, (1.0, 1.0))]
    assert order(quiet)[1][1] != "alike"  # what was inside the band is a difference where there is no noise


class Machine:
    """Stands for a Replay: notes what is run, in order; a run by row has two waits."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []

    def run(self, recording: Recording, scheme: str) -> Sample:
        self.ran.append((recording.name, scheme))
        return Sample((1.0, 1.0), NOTHING, Stats(waits=2 if scheme == "per_row" else 1))


def test_pairs_come_first_then_rounds_in_which_every_leg_has_its_turn() -> None:
    machine: Any = Machine()
    schemes = ("per_row", "direct")
    legs = measure(machine, [RECORDING], schemes, rounds=2, once=2)
    pairs, turn = [("a leg", "direct")] * 2, [("a leg", FLAT), ("a leg", "per_row"), ("a leg", "direct")]
    assert machine.ran == [*pairs, *pairs, *turn, *turn]
    assert [(each.scheme, len(each.samples), len(each.pairs)) for each in legs] == [
        (FLAT, 2, 0),
        ("per_row", 2, 0),
        ("direct", 2, 2),
    ]

    machine.ran.clear()
    measure(machine, [RECORDING], schemes, rounds=2, once=1)
    assert machine.ran == [*pairs, *pairs, *turn, turn[0], turn[2]]  # by row once
