"""pytest's argument `staging_schedule`: a test that asks for it runs once for each schedule.

    @pytest.mark.staging(schedules="exhaustive")  # or "seeded", with runs= and seed=; without the mark: "delays"
    def test_upload(staging_schedule):
        device = staging_schedule.device()
        ...

A run fails where the test does, or where the device finds an access without a wait. The first failure ends the runs,
and prints how to run its schedule alone: `--kvstage-replay STRING`. It costs a pytest run that does not use it nothing
but the import of a few small modules.
"""

from collections.abc import Generator
from typing import Any

import pytest

OUTER = pytest.StashKey[Any]()
"""The simulated device that is there outside of tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kvstage-replay`."""
    parser.getgroup("kvstage").addoption(
        "--kvstage-replay",
        metavar="STRING",
        help="run tests that ask for staging_schedule under this schedule alone, such as hold:3:end: a failure prints it",
    )
    parser.getgroup("kvstage").addoption(
        "--kvstage-cuda", action="store_true", help="every test sees one simulated CUDA device, and runs in issue order and late"
    )
    parser.getgroup("kvstage").addoption(
        "--kvstage-cuda-counts-on",
        metavar="NAME",
        action="append",
        default=[],
        help="count on what a driver does though no document promises it; docs/cuda.md lists the names",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks, refuses a string that names no schedule, and boots the simulated device before a test is imported."""
    config.addinivalue_line(
        "markers",
        'staging(schedules="delays", runs=100, seed=None): which schedules a test with staging_schedule runs under: '
        '"delays", "exhaustive" or "seeded"',
    )
    text = config.getoption("--kvstage-replay")
    if text is not None:
        from kvstage_model.schedules.replay_strings import ReplayStringError, from_string

        try:
            from_string(text)
        except ReplayStringError as error:
            raise pytest.UsageError(f"--kvstage-replay: {error}") from error
    for line in (
        'cuda_schedules("seeded" or "exhaustive", runs=100, seed=None): which schedules a test runs under with --kvstage-cuda',
        "cuda_finding(text): with --kvstage-cuda, the test must give a finding that has this text: it is a test of wrong code",
    ):
        config.addinivalue_line("markers", line)
    if config.getoption("--kvstage-cuda"):
        from kvstage.cuda import NoCudaHereError, simulated_cuda

        outer = simulated_cuda(counts_on=config.getoption("--kvstage-cuda-counts-on"), raises=False)
        try:
            outer.__enter__()
        except NoCudaHereError as error:
            raise pytest.UsageError(f"--kvstage-cuda: {error}") from error
        config.stash[OUTER] = outer


def pytest_unconfigure(config: pytest.Config) -> None:
    """The device is gone with the last test."""
    outer = config.stash.get(OUTER, None)
    if outer is not None:
        del config.stash[OUTER]
        outer.__exit__(None, None, None)


@pytest.fixture
def cuda_under_schedules(request: pytest.FixtureRequest) -> object:
    """This run's schedule, on the simulated CUDA device: a test that asks for it is skipped without --kvstage-cuda."""
    from .runs import CURRENT

    if not request.config.getoption("--kvstage-cuda"):
        pytest.skip("needs --kvstage-cuda, which gives the process a simulated device")
    run = request.node.stash.get(CURRENT, None)
    return None if run is None else run.staging


@pytest.fixture
def staging_schedule(request: pytest.FixtureRequest) -> object:
    """This run's `pytest_kvstage.staging_schedule.StagingSchedule`: call its `device()`."""
    from .runs import CURRENT

    run = request.node.stash.get(CURRENT, None)
    if run is None:
        pytest.fail(
            "staging_schedule must be an argument of the test, or of a fixture that the test names; and no other plugin, such as "
            "one that repeats tests, may run it",
            pytrace=False,
        )
    if isinstance(run.staging, Exception):
        pytest.fail(str(run.staging), pytrace=False)
    return run.staging


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test that asks for `staging_schedule` once for each schedule, and with --kvstage-cuda every other one too."""
    if not _scheduled(item):
        return None
    from .cuda_schedule import CudaMarkError, CudaPlan, cuda_plan_of
    from .plan import MarkError, Plan, plan_of
    from .runs import run_all

    mark, replay = item.get_closest_marker("staging"), item.config.getoption("--kvstage-replay")
    try:
        plan: Plan | CudaPlan | Exception
        if _staged(item):
            plan = plan_of(mark.args if mark else (), mark.kwargs if mark else {}, replay)
        else:
            plan = cuda_plan_of(item.get_closest_marker("cuda_schedules"), replay)
    except (MarkError, CudaMarkError) as error:
        plan = error
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_all(item, nextitem, plan):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Looks at a run when its test has returned or failed: functions, methods of a `unittest.TestCase`, and all else."""
    if not _scheduled(item):
        return (yield)
    from .runs import judging

    with judging(item):
        return (yield)


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """With -v: under how many schedules a test has passed."""
    made = _property(report, "kvstage_schedules")
    if made is None or not report.passed or hasattr(report, "wasxfail"):
        return None
    return "passed", ".", f"PASSED ({_count(made, 'schedule')})"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A replay that no test has run under is an error of usage: nothing was shown."""
    if _idle(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How many schedules there were, and the seeds."""
    reports = _staged_reports(terminalreporter)
    if reports:
        made = sum(_property(report, "kvstage_schedules") or 0 for report in reports)
        terminalreporter.write_line(f"kvstage: {_count(made, 'schedule')} in {_count(len(reports), 'test')}")
    elif _idle(config):
        terminalreporter.write_line(
            f"kvstage: no test has run under --kvstage-replay {config.getoption('--kvstage-replay')}: name one that asks for "
            "staging_schedule",
            red=True,
        )
    for report in reports:
        seed = _property(report, "kvstage_seed")
        if seed is not None:
            terminalreporter.write_line(f"kvstage: seed {seed} in {report.nodeid}")


def _scheduled(item: pytest.Item) -> bool:
    return _staged(item) or bool(item.config.getoption("--kvstage-cuda"))


def _staged(item: pytest.Item) -> bool:
    return "staging_schedule" in getattr(item, "fixturenames", ())


def _idle(config: pytest.Config) -> bool:
    """Whether tests were to be run under a schedule, and none was."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")  # which workers of xdist have not
    if config.getoption("--kvstage-replay") is None or config.option.collectonly or reporter is None:
        return False
    return not _staged_reports(reporter)


def _staged_reports(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    """The reports of tests that ran under schedules."""
    return [report for reports in reporter.stats.values() for report in reports if _property(report, "kvstage_schedules")]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _property(report: object, name: str) -> int | None:
    return dict(getattr(report, "user_properties", ())).get(name)
