"""The plugin, on test files of a user's: what runs, what fails, and what is printed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kvstage  # noqa: F401  # runs in this process forget what they were first to import, and torch can't be loaded twice
from tests.support.paths import ROOT
from tests.support.uploads import PLUGIN, RIGHT, WRONG, run

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that are installed take seconds to load in each run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_test_runs_once_for_each_schedule_and_counts_once(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_right(staging_schedule):
    with open("names", "a") as names:
        print(staging_schedule.name, file=names)
    assert upload(staging_schedule.device(), wait=True) == STEPS
""",
        "-v",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::test_right PASSED (14 schedules)*", "kvstage: 14 schedules in 1 test"])
    holds = [f"hold:{copy}:{half}" for copy in range(6) for half in ("begin", "end")]
    assert (pytester.path / "names").read_text().split() == ["issue-order", "late", *holds]


def test_a_failure_names_schedule_accesses_lines_and_replay_and_the_replay_is_just_that(pytester: pytest.Pytester) -> None:
    result = run(pytester, WRONG)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_wrong?hold:0:end? _*",
            ">       assert upload(staging_schedule.device(), wait=False) == STEPS",
            "E       assert [[][[]1, 2, 11, 1*",
            "E       the host writes what copy 0 on stream h2d may still read: a wait is missing",
            'E         first:   *.py:12: device.copy("h2d", pinned, table)',
            "E         second:  *.py:11: pinned?at? = ids?at?",
            "E       schedule hold:0:end (hold copy 0 before its end)",
            "E       replay: pytest *::test_wrong --kvstage-replay hold:0:end",
        ]
    )
    assert (pytester.path / "names").read_text().split() == ["issue-order", "hold:0:end"], (
        "found in the first run, shown in the second"
    )
    found = re.search(r"replay: pytest (\S+) --kvstage-replay (\S+)$", result.stdout.str(), re.MULTILINE)
    assert found is not None
    (pytester.path / "names").unlink()
    again = pytester.runpytest_inprocess(*PLUGIN, found[1], "--kvstage-replay", found[2])
    again.assert_outcomes(failed=1)
    assert (pytester.path / "names").read_text().split() == [found[2]]
    errors = [[line for line in each.outlines if line.startswith("E  ")] for each in (result, again)]
    assert errors[0] == errors[1]
    assert len(errors[0]) > 8


@pytest.mark.parametrize("mark", ['schedules="seeded", seed=5', 'schedules="exhaustive"'])
def test_other_drivers_find_wrong_bytes_and_their_schedules_are_replayed(pytester: pytest.Pytester, mark: str) -> None:
    """Only the bytes show it: the array escapes."""
    tests = f"""
@pytest.mark.staging({mark})
def test_bytes(staging_schedule):
    device = staging_schedule.device()
    pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    array = pinned.numpy()
    array[:] = 1
    device.copy("h2d", pinned, table)
    device.record(event := device.event(), "h2d")
    while not device.query(event):
        array[:] = 2
    assert table.tolist() == [1] * 4
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       the device has seen no two accesses without an order: *"])
    name = "seeded:5:" if "seeded" in mark else "choices:"
    result.stdout.fnmatch_lines([f"*_ test_bytes?{name}*? _*"])
    found = re.search(r"replay: pytest (\S+) --kvstage-replay (\S+)$", result.stdout.str(), re.MULTILINE)
    assert found is not None
    again = pytester.runpytest_inprocess(*PLUGIN, found[1], "--kvstage-replay", found[2])
    again.assert_outcomes(failed=1)
    wrong = [next(line for line in each.outlines if line.startswith("E  ")) for each in (result, again)]
    assert wrong[0] == wrong[1]


def test_the_seed_is_printed(pytester: pytest.Pytester) -> None:
    tests = '@pytest.mark.staging(schedules="seeded", runs=2)' + RIGHT
    seeds = []
    for _ in range(2):
        result = run(pytester, tests)
        result.assert_outcomes(passed=1)
        seeds += re.findall(r"kvstage: seed (\d+) in .*::test_right", result.stdout.str())
    assert len(set(seeds)) == 2, "a seed that is not given is a new one each time"


NO_SCHEDULE = {
    "saw no schedule": ("pass", "the test has seen no schedule: call staging_schedule.device()"),
    "issued nothing": ("staging_schedule.device().synchronize('a')", "nothing was issued on a stream"),
    "two devices": ("staging_schedule.device(); staging_schedule.device()", "one run of a test has one device"),
}


@pytest.mark.parametrize("name", NO_SCHEDULE)
def test_a_test_that_shows_nothing_fails(pytester: pytest.Pytester, name: str) -> None:
    body, message = NO_SCHEDULE[name]
    result = run(pytester, f"def test_nothing(staging_schedule):\n    {body}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{message}*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hold:6:end", "nothing was held back: the test issued 6 operations, and this schedule holds number 6, from 0"),
        ("choices:" + ".".join("0" * 90) + ".1", "the run had * choices, and this schedule makes 91"),
        ("choices:7", "*choice 0 of choices 7, then 0 is number 7, but only host, stream h2d * can go on*"),
    ],
)
def test_a_replay_that_is_not_the_tests_fails(pytester: pytest.Pytester, text: str, message: str) -> None:
    result = run(pytester, RIGHT, "--kvstage-replay", text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


def test_a_replay_under_which_no_test_runs_is_a_usage_error(pytester: pytest.Pytester) -> None:
    tests = (
        """
def test_plain():
    pass

@pytest.mark.skip
def test_skipped(staging_schedule):
    pass
"""
        + RIGHT
    )
    result = run(pytester, tests, "--kvstage-replay", "hold:0:end", "-k", "plain or skipped")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["kvstage: no test has run under --kvstage-replay hold:0:end: name one that asks for *"])
    again = pytester.runpytest_inprocess(*PLUGIN, "--kvstage-replay", "hold:0:end")
    assert again.ret == pytest.ExitCode.OK
    again.stdout.fnmatch_lines(["kvstage: 1 schedule in 1 test"])
    assert pytester.runpytest_inprocess(*PLUGIN, "--kvstage-replay", "hold:0:end", "--collect-only").ret == pytest.ExitCode.OK


LESS = """
RUNS = []

{mark}
def test_less(staging_schedule):
    RUNS.append(1)
    device = staging_schedule.device()
    a, b = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    for _ in range(3 if len(RUNS) == 1 else 1):
        device.copy("h2d", a, b)
    device.synchronize("h2d")
"""


@pytest.mark.parametrize(
    ("mark", "shows"),
    [
        ("", "nothing was held back: the test issued 1 operation, and this schedule holds number 1, from 0"),
        ('@pytest.mark.staging(schedules="exhaustive")', "the run had * choices, and this schedule makes *"),
    ],
)
def test_a_test_that_issues_less_in_later_runs_fails(pytester: pytest.Pytester, mark: str, shows: str) -> None:
    result = run(pytester, LESS.format(mark=mark))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{shows}: earlier runs of the test issued that much*must issue the same work in each run*"])


def test_a_string_that_is_none_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, WRONG, "--kvstage-replay", "hold")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --kvstage-replay: 'hold' names no schedule*"])


def test_marks_that_make_no_sense_and_too_many_schedules_are_errors(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.staging(schedules="all")
def test_mark(staging_schedule):
    pass

@pytest.mark.staging(schedules="exhaustive", runs=3)
def test_many(staging_schedule):
    upload(staging_schedule.device(), True)
"""
    result = run(pytester, tests, "--strict-markers")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["pytest.mark.staging(schedules='all'): it must be*", "more than 3 schedules: make the instance smaller*"]
    )


def test_a_run_that_does_not_use_it_loads_next_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    program = (
        "import sys, pytest\n"
        f"code = pytest.main(['-q', '-p', 'pytest_kvstage.plugin', {str(tmp_path)!r}])\n"
        "heavy = {'torch', 'numpy', 'z3', 'kvstage', 'kvstage_model.schedules'} & set(sys.modules)\n"
        "assert not code and not heavy, (code, heavy)\n"
    )
    environment = {"PYTHONPATH": str(ROOT / "model"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, env=environment, capture_output=True)


def test_the_package_declares_it_under_the_name_of_its_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN[1]: PLUGIN[1]}
