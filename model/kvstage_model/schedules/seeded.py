"""Schedules drawn at random, each from a seed and the number of the run: for code with too many to try them all."""

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from .schedule import Move, Schedule

T = TypeVar("T")

SPEEDS = (1, 8, 64)
"""How often each goes on, against the others: draws of equal chances would hardly ever leave one of them far behind."""

LARGEST_SEED = 2**32
"""Seeds that are drawn lie below."""

SEED_DIGITS, RUN_DIGITS = 20, 9
"""How many digits a seed and the number of a run may have in the string of a schedule."""


class Seeded:
    """Draws who goes on. The host and each stream have a speed of their own, which is drawn first.

    The same seed and run give the same draws on every machine. Use a new one for each run of the code.
    """

    def __init__(self, seed: int, run: int) -> None:
        self.seed = seed
        self.run = run
        self._random = random.Random(f"{seed} {run}")
        self._speeds: dict[str | None, int] = {}

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """One of the moves, the fast ones more often."""
        for move in moves:
            if move.stream not in self._speeds:
                self._speeds[move.stream] = self._random.choice(SPEEDS)
        (chosen,) = self._random.choices(moves, [self._speeds[move.stream] for move in moves])
        return chosen

    def __str__(self) -> str:
        return f"seed {self.seed}, run {self.run}"


def seeded(run: Callable[[Schedule], T], seed: int, runs: int) -> Iterator[tuple[Schedule, T]]:
    """Runs the code `runs` times, each under a schedule drawn from the seed."""
    for number in range(runs):
        schedule = Seeded(seed, number)
        yield schedule, run(schedule)


def draw_seed() -> int:
    """A seed that the caller did not choose. Print it."""
    return random.SystemRandom().randrange(LARGEST_SEED)
