"""A test on the simulated CUDA device: one run of it, under one schedule, and which schedules there are.

Nothing here loads torch before a test runs.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from kvstage_model.schedules.drivers import exhaustive
from kvstage_model.schedules.replay_strings import from_string, to_string
from kvstage_model.schedules.schedule import Hold, IssueOrder, Late, Schedule
from kvstage_model.schedules.seeded import draw_seed, seeded

from .staging_schedule import Failure

if TYPE_CHECKING:
    from kvstage.cuda import Simulation

T = TypeVar("T")

DEFAULT, SEEDED, EXHAUSTIVE = "default", "seeded", "exhaustive"
RUNS, MOST = 100, 10_000


class CudaMarkError(ValueError):
    """A test's mark says something that makes no sense."""


@dataclass(frozen=True, slots=True)
class CudaPlan:
    """The schedules of one test: issue order and late, many by a mark, or the only one that the command line names."""

    schedules: str = DEFAULT
    runs: int = RUNS
    seed: int | None = None
    replay: str | None = None

    def drive(self, run: Callable[[Schedule], Any]) -> Iterator[tuple[Schedule, Any]]:
        """Runs the test once for each."""
        if self.replay is not None:
            schedule = from_string(self.replay)
            yield schedule, run(schedule)
            return
        first = IssueOrder()
        result = run(first)
        yield first, result
        if result == 0:  # the test does not use the device
            return
        if self.schedules == SEEDED:
            assert self.seed is not None, "a plan draws its seed when it is made"
            yield from seeded(run, self.seed, self.runs)
        elif self.schedules == EXHAUSTIVE:
            yield from exhaustive(run, self.runs)
        else:
            late = Late()
            yield late, run(late)

    def __str__(self) -> str:
        return self.replay or (f"{SEEDED}, seed {self.seed}" if self.schedules == SEEDED else self.schedules)


def cuda_plan_of(mark: pytest.Mark | None, replay: str | None) -> CudaPlan:
    """The plan of a mark `cuda_schedules("seeded" | "exhaustive", runs=..., seed=...)`. Raises CudaMarkError."""
    if mark is None:
        return CudaPlan(replay=replay)
    unknown = set(mark.kwargs) - {"runs", "seed"}
    if len(mark.args) != 1 or mark.args[0] not in (SEEDED, EXHAUSTIVE) or unknown:
        raise CudaMarkError(f'pytest.mark.cuda_schedules{mark.args}: it takes "{SEEDED}" or "{EXHAUSTIVE}", then runs= and seed=')
    schedules = mark.args[0]
    runs, seed = mark.kwargs.get("runs", MOST if schedules == EXHAUSTIVE else RUNS), mark.kwargs.get("seed")
    if not isinstance(runs, int) or runs < 1 or not isinstance(seed, int | None) or (seed is not None and schedules == EXHAUSTIVE):
        raise CudaMarkError(
            f"pytest.mark.cuda_schedules({schedules!r}, runs={runs!r}, seed={seed!r}): integers, and a seed to draw by"
        )
    return CudaPlan(schedules, runs, draw_seed() if seed is None and schedules == SEEDED else seed, replay)


class CudaSchedule:
    """One run of a test on the simulated device. `expected`: a text that a finding must have, for a test of wrong code."""

    def __init__(self, schedule: Schedule, nodeid: str, counts_on: tuple[str, ...], expected: str | None) -> None:
        self.schedule = schedule
        self.name = to_string(schedule)
        self.issued = 0
        self._nodeid = nodeid
        self._counts_on = counts_on
        self._expected = expected
        self._run: Simulation | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """The test sees the device inside."""
        from kvstage.cuda import simulated_cuda

        with ExitStack() as stack:
            self._run = stack.enter_context(simulated_cuda(self.schedule, counts_on=self._counts_on, raises=False))
            yield
            self._run.finish()
            self.issued = self._run.accesses.asynchronous

    def finish(self, *, replayed: bool) -> Failure | None:
        """The test has returned: what was found, or why the run shows nothing."""
        found = self._run.findings if self._run else ()
        if self._expected is not None:
            if any(self._expected in str(each) for each in found):
                return None
            told = "\n\n".join(map(str, found)) or "nothing was found"
            return Failure(f"a finding with {self._expected!r} was expected:\n{told}\n{self.replay()}")
        if found:
            return Failure("\n\n".join([*map(str, found), self.replay()]), found[0].schedule)
        if isinstance(self.schedule, Hold) and self.schedule.index >= self.issued:
            return Failure(f"nothing was held back: the test issued {self.issued} operations, from 0\n{self.replay()}")
        return None

    def explain(self, error: BaseException) -> str | None:
        """The test has failed: adds how to run just this again. What was found is a note of the error already."""
        found = self._run.finish() if self._run else ()
        error.add_note(self.replay())
        return found[0].schedule if found else None

    def replay(self) -> str:
        """The schedule, and the command that runs the test under it."""
        command = f"pytest {shlex.quote(self._nodeid)} --kvstage-cuda --kvstage-replay {self.name}"
        return f"schedule {self.name} ({self.schedule})\nreplay: {command}"

    def __repr__(self) -> str:
        return f"<cuda_under_schedules {self.name}>"
