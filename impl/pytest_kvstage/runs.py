"""One test, run again and again under other schedules, each time with its fixtures made anew. It counts as one test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from _pytest.runner import runtestprotocol

from kvstage_model.schedules.drivers import TooManySchedulesError
from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import Schedule

from .cuda_schedule import CudaPlan, CudaSchedule
from .plan import Plan
from .staging_schedule import StagingSchedule

CURRENT = pytest.StashKey["ScheduledRun"]()
"""The run that a test is in."""

TOLD = "_excinfo"
"""Where pytest's items of `unittest.TestCase` keep what a test has raised, until it is reported."""

SCHEDULES, SEED = "kvstage_schedules", "kvstage_seed"
"""Properties of a test's report: under how many schedules it ran, and from which seed."""


@dataclass
class ScheduledRun:
    """One run of a test: its schedule, or the error for which there can't be one; and the schedule that shows more, if any."""

    staging: StagingSchedule | CudaSchedule | Exception
    replayed: bool
    raised: bool = False
    witness: str | None = None


@contextmanager
def judging(item: pytest.Item) -> Iterator[None]:
    """Looks at a run when its test has returned or failed, whatever kind of test it is."""
    run = item.stash[CURRENT]
    if isinstance(run.staging, Exception):
        if "staging_schedule" not in getattr(item, "fixturenames", ()):  # that one fails by itself
            pytest.fail(str(run.staging), pytrace=False)
        yield
        return
    failure = None
    try:
        with run.staging.running():
            yield
        told = _told(item)
        if told is None:
            failure = run.staging.finish(replayed=run.replayed)
        elif isinstance(told, pytest.skip.Exception):
            run.raised = True
        else:
            run.raised, run.witness = True, run.staging.explain(told)
    except (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt):
        run.raised = True
        raise
    except BaseException as error:
        run.raised, run.witness = True, run.staging.explain(error)
        raise
    if failure is not None:
        run.raised, run.witness = True, failure.witness
        pytest.fail(failure.message, pytrace=False)


def _told(item: pytest.Item) -> BaseException | None:
    """What a test of a `unittest.TestCase` has raised: that comes as a report to its item, and not as an error."""
    told = getattr(item, TOLD, None)
    return told[0].value if told else None


def run_all(item: pytest.Item, nextitem: pytest.Item | None, plan: Plan | CudaPlan | Exception) -> Iterator[pytest.TestReport]:
    """Runs a test under the schedules of its plan, up to the first that fails, and gives the reports of the last run.

    Where what was found shows better under another schedule, the last run is under that.
    """
    runs = _Runs(item, plan)
    runs.make()
    del item.stash[CURRENT]
    yield from runs.reports
    rest = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if rest.excinfo is not None:  # what outlives the test has failed to end
        report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=rest)
        yield report


class _RaisedError(Exception):
    """A run was the last: it has failed, or was skipped."""

    def __init__(self, run: ScheduledRun) -> None:
        super().__init__()
        self.run = run


class _Runs:
    """The runs of one test, and the reports of the one that counts."""

    def __init__(self, item: pytest.Item, plan: Plan | CudaPlan | Exception) -> None:
        self.reports: list[pytest.TestReport] = []
        self._item = item
        self._plan = plan
        self._made = 0
        self._seconds = 0.0

    def make(self) -> None:
        """All runs."""
        if isinstance(self._plan, Exception):
            self._run(ScheduledRun(self._plan, False))
            return
        last = self._drive(self._plan)
        if last is not None:
            self._show(last)
        self._annotate(self._plan)

    def _drive(self, plan: Plan | CudaPlan) -> ScheduledRun | None:
        """Runs up to the first that raises; which that was."""
        refused: Exception | None = None
        try:
            for _ in plan.drive(self._passing):
                pass
        except _RaisedError as error:
            return error.run
        except TooManySchedulesError as error:
            refused = error
        return self._run(ScheduledRun(refused, False)) if refused else None

    def _passing(self, schedule: Schedule) -> int:
        """How much the test issued. Raises _RaisedError where it failed."""
        run = self._under(schedule)
        if run.raised:
            raise _RaisedError(run)
        return run.staging.issued if isinstance(run.staging, CudaSchedule) else 1

    def _under(self, schedule: Schedule, *, replayed: bool = False) -> ScheduledRun:
        replayed = replayed or self._replayed
        name = _from_here(self._item)
        if isinstance(self._plan, CudaPlan):
            mark = self._item.get_closest_marker("cuda_finding")
            counts_on = tuple(self._item.config.getoption("--kvstage-cuda-counts-on"))
            expected = str(mark.args[0]) if mark and mark.args else "" if mark else None
            return self._run(ScheduledRun(CudaSchedule(schedule, name, counts_on, expected), self._replayed))
        return self._run(ScheduledRun(StagingSchedule(schedule, name, replayed=replayed), self._replayed))

    @property
    def _replayed(self) -> bool:
        return isinstance(self._plan, Plan | CudaPlan) and self._plan.replay is not None

    def _run(self, run: ScheduledRun) -> ScheduledRun:
        """The whole protocol of a test but for what outlives it: its parent stays set up."""
        self._item.stash[CURRENT] = run
        self._item._report_sections.clear()  # what earlier runs have printed
        self.reports = runtestprotocol(self._item, log=False, nextitem=self._item.parent)  # type: ignore[arg-type]
        self._made += 1
        called = [report for report in self.reports if report.when == "call"]
        self._seconds += sum(report.duration for report in called)
        run.raised |= not called or any(not report.passed for report in self.reports if report.when != "call")
        if run.raised and isinstance(run.staging, StagingSchedule | CudaSchedule):
            for report in called:
                path, line, name = report.location
                report.location = path, line, f"{name}[{run.staging.name}]"
        return run

    def _show(self, run: ScheduledRun) -> None:
        """Runs the test under the schedule that must show what was found.

        Where that shows nothing, under the one that did again: what it reports then names that one alone.
        """
        if run.witness is None or self._replayed or not isinstance(run.staging, StagingSchedule | CudaSchedule):
            return
        if run.witness != run.staging.name:
            reports = self.reports
            if not self._under(from_string(run.witness)).raised:
                self.reports = reports
                self._under(from_string(run.staging.name), replayed=True)
                if not any(report.failed for report in self.reports):
                    self.reports = reports

    def _annotate(self, plan: Plan | CudaPlan) -> None:
        for report in self.reports:
            if report.when == "call":
                report.duration = self._seconds
                report.user_properties.append((SCHEDULES, self._made))
                report.sections.append(("staging schedules", f"{self._made} by {plan}"))
                if plan.seed is not None and not self._replayed:
                    report.user_properties.append((SEED, plan.seed))


def _from_here(item: pytest.Item) -> str:
    """The test's name for a command line in the current folder."""
    return "::".join([os.path.relpath(item.path), *item.nodeid.split("::")[1:]])
