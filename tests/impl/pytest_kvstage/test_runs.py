"""Runs of one test as the rest of pytest sees them: fixtures, expected failures, skips, times, workers."""

import re

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice
from tests.support.uploads import PLUGIN, RIGHT, UPLOAD, WRONG, run

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that are installed take seconds to load in each run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


FIXTURES = """
@pytest.fixture(scope="module")
def once():
    print("module up")
    yield
    print("module down")

@pytest.fixture
def each():
    print("function up")
    yield
    print("function down")

def test_a(once, each, tmp_path, staging_schedule):
    assert not list(tmp_path.iterdir())
    (tmp_path / "used").touch()
    device = staging_schedule.device()
    a, b = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    device.copy("h2d", a, b)
    device.synchronize("h2d")

def test_b(once, each):
    pass
"""


def test_fixtures_are_made_anew_for_each_run_and_those_of_a_module_once(pytester: pytest.Pytester) -> None:
    result = run(pytester, FIXTURES, "-s")
    result.assert_outcomes(passed=2)
    found = re.findall(r"(?:module|function) (?:up|down)", result.stdout.str())
    assert found == ["module up", *["function up", "function down"] * 5, "module down"], "four schedules, and the other test"


def test_a_fixture_that_fails_ends_the_runs(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def broken():
    yield
    raise OSError("left open")

@pytest.fixture(scope="module")
def broken_later():
    yield
    raise OSError("left open, too")

def test_a(broken, staging_schedule):
    upload(staging_schedule.device(), True)

def test_b(broken_later, staging_schedule):
    upload(staging_schedule.device(), True)
"""
    result = run(pytester, tests)
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(
        ["E       OSError: left open", "E       OSError: left open, too", "kvstage: 15 schedules in 2 tests"]
    )


def test_the_device_may_be_a_fixture_of_parametrized_tests_in_classes(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def device(staging_schedule):
    with staging_schedule.device() as device:
        yield device

class TestUpload:
    @pytest.mark.parametrize("wait", [True, False])
    def test_it(self, device, wait):
        assert upload(device, wait) == STEPS

def test_asked_for_later(request):
    request.getfixturevalue("staging_schedule")
"""
    result = run(pytester, tests)
    result.assert_outcomes(passed=1, failed=2)
    lines = [
        "*_ TestUpload.test_it?False??hold:0:end? _*",
        "*replay: pytest '*::TestUpload::test_it?False?' --kvstage-replay hold:0:end",
    ]
    result.stdout.fnmatch_lines([*lines, "staging_schedule must be an argument of the test, or of a fixture that the test names*"])


def test_a_fixture_may_wait_for_what_is_over_and_issue_nothing_more(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def drained(staging_schedule):
    device = staging_schedule.device()
    yield device
    device.synchronize("h2d")
    device.close()

@pytest.fixture
def late(staging_schedule):
    device = staging_schedule.device()
    yield device
    device.allocate(Memory.PINNED, 4)

def test_drained(drained):
    assert upload(drained, True) == STEPS

def test_late(late):
    assert upload(late, True) == STEPS
"""
    result = run(pytester, tests)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_late*", "E*ClosedError: this CheckedDevice is closed, its run is over*"]
    )


def test_a_test_takes_as_long_as_all_of_its_runs(pytester: pytest.Pytester) -> None:
    tests = """
import time

def test_slow(staging_schedule, monkeypatch):
    upload(staging_schedule.device(), True)
    from _pytest import timing
    start = time.perf_counter
    monkeypatch.setattr(timing, "perf_counter", lambda: start() + 100)
"""
    result = run(pytester, tests, "--durations=1", "-vv")
    found = re.search(r"(\d+)\.\d+s call .*::test_slow", result.stdout.str())
    assert found is not None
    assert int(found[1]) >= 1400, "fourteen runs of a hundred seconds"


def test_expected_failures_and_skips_are_what_they_are(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.xfail(strict=True)
def test_expected(staging_schedule):
    assert upload(staging_schedule.device(), False) == STEPS

@pytest.mark.xfail(strict=True)
def test_unexpected(staging_schedule):
    assert upload(staging_schedule.device(), True) == STEPS

def test_skipped(staging_schedule):
    pytest.skip("not here")

def test_plain():
    pass
"""
    result = run(pytester, tests)
    result.assert_outcomes(xfailed=1, failed=1, skipped=1, passed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*"])


def test_it_works_under_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UPLOAD + WRONG + RIGHT)
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-n", "1", "-v")
    result.assert_outcomes(passed=1, failed=1)
    lines = [
        "*_ test_wrong?hold:0:end? _*",
        "E*replay: pytest *::test_wrong --kvstage-replay hold:0:end",
        "kvstage: 16 schedules in 2 tests",
    ]
    result.stdout.fnmatch_lines(lines)


def test_a_replay_under_which_no_test_runs_is_a_usage_error_under_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UPLOAD + RIGHT + "\ndef test_plain():\n    pass\n")
    xdist = (*PLUGIN, "-p", "xdist", "-n", "1", "--kvstage-replay", "hold:0:end")
    result = pytester.runpytest_subprocess(*xdist, "-k", "plain")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["kvstage: no test has run under --kvstage-replay hold:0:end: *"])
    assert pytester.runpytest_subprocess(*xdist, "-k", "right").ret == pytest.ExitCode.OK
