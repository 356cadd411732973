"""Which schedules a test runs under: what its mark says, or the one schedule that the command line names."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.schedules.seeded import RUN_DIGITS, SEED_DIGITS, draw_seed, seeded

T = TypeVar("T")

DELAYS, EXHAUSTIVE, SEEDED = "delays", "exhaustive", "seeded"
RUNS = 100
"""How many schedules `seeded` draws where the mark does not say."""

MOST = 10_000
"""How many schedules `exhaustive` may find where the mark does not say: some minutes of a test."""


class MarkError(ValueError):
    """A test's mark `staging` says something that makes no sense."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The schedules of one test. `replay` is the string of the only one, where there is one."""

    schedules: str = DELAYS
    runs: int = RUNS
    seed: int | None = None
    replay: str | None = None

    def drive(self, run: Callable[[Schedule], T]) -> Iterator[tuple[Schedule, T]]:
        """Runs the test once for each."""
        if self.replay is not None:
            schedule = from_string(self.replay)
            return iter([(schedule, run(schedule))])
        if self.schedules == SEEDED:
            assert self.seed is not None, "a plan draws its seed when it is made"
            return seeded(run, self.seed, self.runs)
        return exhaustive(run, self.runs) if self.schedules == EXHAUSTIVE else delays(run)

    def __str__(self) -> str:
        return f"{SEEDED}, seed {self.seed}" if self.schedules == SEEDED and self.replay is None else self.replay or self.schedules


def plan_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], replay: str | None) -> Plan:
    """The plan of a mark `staging(schedules="delays" | "exhaustive" | "seeded", runs=..., seed=...)`. Raises MarkError.

    `runs` is how many schedules "seeded" draws, and the most that "exhaustive" may find; a seed that is not given is drawn.
    """
    unknown = set(kwargs) - {"schedules", "runs", "seed"}
    if args or unknown:
        named = ", ".join(sorted(unknown)) or "an argument without a name"
        raise MarkError(f"pytest.mark.staging has {named}: it takes schedules=, runs= and seed= alone")
    schedules = kwargs.get("schedules", DELAYS)
    if schedules not in (DELAYS, EXHAUSTIVE, SEEDED):
        raise MarkError(f"pytest.mark.staging(schedules={schedules!r}): it must be {DELAYS!r}, {EXHAUSTIVE!r} or {SEEDED!r}")
    runs, seed = kwargs.get("runs", MOST if schedules == EXHAUSTIVE else RUNS), kwargs.get("seed")
    for name, number, allowed, least, digits in (
        ("runs", runs, schedules != DELAYS, 1, RUN_DIGITS),
        ("seed", seed, schedules == SEEDED, 0, SEED_DIGITS),
    ):
        fits = isinstance(number, int) and not isinstance(number, bool) and least <= number < 10**digits
        if name in kwargs and not (allowed and fits):
            wanted = f"{name} must be an integer from {least} on, of at most {digits} digits"
            why = wanted if allowed else f"{schedules!r} has no {name}"
            raise MarkError(f"pytest.mark.staging(schedules={schedules!r}, {name}={number!r}): {why}")
    if schedules == SEEDED and seed is None:
        seed = draw_seed()
    return Plan(schedules, runs, seed, replay)
