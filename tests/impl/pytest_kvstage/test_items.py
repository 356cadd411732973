"""Tests that are no plain functions: methods of a `unittest.TestCase`, coroutines, tests of other plugins. All are judged."""

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice
from tests.support.uploads import run

pytest_plugins = ["pytester"]

CASE = """
import unittest

class TestUpload(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _device(self, staging_schedule):
        self.device = staging_schedule.device()
"""


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that are installed take seconds to load in each run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_methods_of_a_test_case_run_under_each_schedule_and_pass_where_they_are_right(pytester: pytest.Pytester) -> None:
    tests = """
    def test_right(self):
        self.assertEqual(upload(self.device, True), STEPS)

    def test_released_at_the_end(self):
        a, b = self.device.allocate(Memory.PINNED, 4), self.device.allocate(Memory.DEVICE, 4)
        self.device.copy("h2d", a, b)
"""
    result = run(pytester, CASE + tests)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["kvstage: 18 schedules in 2 tests"])


def test_a_race_in_a_test_case_is_a_failure_with_a_replay(pytester: pytest.Pytester) -> None:
    """Nothing is asserted: only the judge can see it."""
    tests = """
    def test_wrong(self):
        pinned, table = self.device.allocate(Memory.PINNED, 4), self.device.allocate(Memory.DEVICE, 4)
        pinned[:] = 1
        self.device.copy("h2d", pinned, table)
        pinned[:] = 2
        self.device.synchronize("h2d")
"""
    result = run(pytester, CASE + tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ TestUpload.test_wrong?hold:0:end? _*",
            "the host writes what copy 0 on stream h2d may still read: a wait is missing",
            "replay: pytest *::TestUpload::test_wrong --kvstage-replay hold:0:end",
        ]
    )


def test_an_assertion_of_a_test_case_is_explained(pytester: pytest.Pytester) -> None:
    tests = """
    def test_wrong(self):
        self.assertEqual(upload(self.device, False), STEPS)
"""
    result = run(pytester, CASE + tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ TestUpload.test_wrong?hold:0:end? _*",
            "E*AssertionError: Lists differ: *",
            "E*the host writes what copy 0 on stream h2d may still read: a wait is missing",
            "E*replay: pytest *::TestUpload::test_wrong --kvstage-replay hold:0:end",
        ]
    )


def test_skips_and_expected_failures_of_a_test_case_and_one_that_issues_nothing(pytester: pytest.Pytester) -> None:
    tests = """
    def test_skipped(self):
        self.skipTest("not here")

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(upload(self.device, False), STEPS)

    def test_nothing(self):
        pass
"""
    result = run(pytester, CASE + tests)
    result.assert_outcomes(skipped=1, xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["nothing was issued on a stream*"])


def test_a_coroutine_that_nobody_runs_fails(pytester: pytest.Pytester) -> None:
    tests = """
async def test_wrong(staging_schedule):
    upload(staging_schedule.device(), False)
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


@pytest.mark.parametrize("wait", [True, False])
def test_items_that_run_functions_in_their_own_way_are_judged(pytester: pytest.Pytester, wait: bool) -> None:
    pytester.makeconftest(
        """
import asyncio, pytest

class Awaited(pytest.Function):
    def runtest(self):
        asyncio.run(self.obj(**{name: self.funcargs[name] for name in self._fixtureinfo.argnames}))

def pytest_pycollect_makeitem(collector, name, obj):
    if asyncio.iscoroutinefunction(obj):
        definition = next(collector._genfunctions(name, obj))
        return Awaited.from_parent(collector, name=name, callobj=obj, fixtureinfo=definition._fixtureinfo)
"""
    )
    result = run(pytester, f"async def test_it(staging_schedule):\n    upload(staging_schedule.device(), {wait})")
    result.assert_outcomes(passed=int(wait), failed=int(not wait))
    result.stdout.fnmatch_lines(["kvstage: 14 schedules in 1 test" if wait else "the host writes what copy 0 *"])
