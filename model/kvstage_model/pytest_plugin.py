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

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kvstage-replay`."""
    parser.getgroup("kvstage").addoption(
        "--kvstage-replay",
        metavar="STRING",
        help="run tests that ask for staging_schedule under this schedule alone, such as hold:3:end: a failure prints it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark, and refuses a string that names no schedule."""
    config.addinivalue_line(
        "markers",
        'staging(schedules="delays", runs=100, seed=None): which schedules a test with staging_schedule runs under: '
        '"delays", "exhaustive" or "seeded"',
    )
    text = config.getoption("--kvstage-replay")
    if text is not None:
        from .replays import ReplayStringError, from_string

        try:
            from_string(text)
        except ReplayStringError as error:
            raise pytest.UsageError(f"--kvstage-replay: {error}") from error


@pytest.fixture
def staging_schedule(request: pytest.FixtureRequest) -> object:
    """This run's `kvstage_model.staging.StagingSchedule`: call its `device()`."""
    from .staging_runs import CURRENT

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
    """Runs a test that asks for `staging_schedule` once for each schedule."""
    if not _staged(item):
        return None
    from .staging_plan import MarkError, Plan, plan_of
    from .staging_runs import run_all

    mark, replay = item.get_closest_marker("staging"), item.config.getoption("--kvstage-replay")
    try:
        plan: Plan | Exception = plan_of(mark.args if mark else (), mark.kwargs if mark else {}, replay)
    except MarkError as error:
        plan = error
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_all(item, nextitem, plan):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Looks at a run when its test has returned or failed."""
    if not _staged(pyfuncitem):
        return (yield)
    from .staging_runs import CURRENT, judged

    with judged(pyfuncitem.stash[CURRENT]):
        return (yield)


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """With -v: under how many schedules a test has passed."""
    made = _property(report, "kvstage_schedules")
    if made is None or not report.passed or hasattr(report, "wasxfail"):
        return None
    return "passed", ".", f"PASSED ({made} schedule{'' if made == 1 else 's'})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many schedules there were, and the seeds."""
    reports = [
        report for reports in terminalreporter.stats.values() for report in reports if _property(report, "kvstage_schedules")
    ]
    if reports:
        made = sum(_property(report, "kvstage_schedules") or 0 for report in reports)
        terminalreporter.write_line(f"kvstage: {made} schedules in {len(reports)} test{'' if len(reports) == 1 else 's'}")
    for report in reports:
        seed = _property(report, "kvstage_seed")
        if seed is not None:
            terminalreporter.write_line(f"kvstage: seed {seed} in {report.nodeid}")


def _staged(item: pytest.Item) -> bool:
    return "staging_schedule" in getattr(item, "fixturenames", ())


def _property(report: object, name: str) -> int | None:
    return dict(getattr(report, "user_properties", ())).get(name)
