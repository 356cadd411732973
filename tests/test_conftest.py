"""The rule that picks which tests marked `extended` a run takes."""

import subprocess
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.extended
@pytest.mark.parametrize("n", range(40))
def test_long(n): pass

def test_short(): pass
"""
LONG = {f"test_rule.py::test_long[{n}]" for n in range(40)}
SHORT = "test_rule.py::test_short"
SHARE = "--extended=share"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project of 40 extended tests and a short one, under the rule, outside any repository."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # importing all plugins takes most of a run
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers = extended: long\naddopts = -p no:cacheprovider")
    pytester.makepyfile(test_rule=TESTS)
    return pytester


def commit(project: pytest.Pytester, message: str) -> str:
    """Make an empty commit, and return its hash."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    if not (project.path / ".git").exists():
        subprocess.run([*git, "init", "-q"], cwd=project.path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], cwd=project.path, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=project.path, check=True, capture_output=True, text=True).stdout.strip()


def ran(project: pytest.Pytester, *options: str) -> set[str]:
    """The tests that a run takes; no test may fail."""
    found = project.inline_run("-q", *options)
    passed, skipped, failed = found.listoutcomes()
    assert (skipped, failed) == ([], [])
    return {report.nodeid for report in passed}


def shares(project: pytest.Pytester) -> dict[int, set[str]]:
    """What runs at eight commits of different remainders: commits until each has come up, some 22."""
    found: dict[int, set[str]] = {}
    for turn in range(400):
        share = int(commit(project, str(turn)), 16) % 8
        if share not in found:
            found[share] = ran(project, SHARE)
        if len(found) == 8:
            return found
    raise AssertionError(f"400 commits gave the remainders {sorted(found)} only")


def test_eight_commits_of_different_shares_run_every_extended_test_exactly_once(project: pytest.Pytester) -> None:
    found = shares(project)
    assert all(SHORT in tests for tests in found.values())
    long = [name for tests in found.values() for name in tests - {SHORT}]
    assert len(long) == 40
    assert set(long) == LONG
    assert max(len(tests) for tests in found.values()) < 20  # and no share is most of the work


def test_a_rule_that_forgets_the_commit_would_be_seen(project: pytest.Pytester) -> None:
    rule = project.path / "conftest.py"
    text = rule.read_text()
    assert text.count("_share_of(item) != share") == 1
    rule.write_text(text.replace("_share_of(item) != share", "_share_of(item) != 3"))
    assert set.union(*shares(project).values()) != LONG | {SHORT}


def test_all_takes_every_test_and_none_which_is_the_default_takes_no_extended_one(project: pytest.Pytester) -> None:
    assert ran(project, "--extended=all") == LONG | {SHORT}
    assert ran(project, "--extended=none") == ran(project) == {SHORT}


def test_without_a_commit_the_share_is_the_first_and_says_so(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.path.parent))
    first = ran(project, SHARE)
    assert 0 < len(first - {SHORT}) < 40
    found = project.runpytest(SHARE)
    found.stdout.fnmatch_lines(["extended: share 0 of 8 by default: no commit is checked out"])
    # A repository whose commit gives share 0 takes the same tests: the default is a share like the others.
    while int(commit(project, "again"), 16) % 8:
        pass
    assert ran(project, SHARE) == first


def test_the_summary_counts_what_ran_and_pytest_what_was_left_out(project: pytest.Pytester) -> None:
    name = commit(project, "first")
    number = len(ran(project, SHARE)) - 1
    found = project.runpytest(SHARE)
    found.stdout.fnmatch_lines([f"extended: share {int(name, 16) % 8} of 8 by commit {name[:8]}, {number} of 40 run"])
    found.assert_outcomes(passed=number + 1, deselected=40 - number)


def test_the_summary_counts_once_under_workers(project: pytest.Pytester) -> None:
    name = commit(project, "first")
    number = len(ran(project, SHARE)) - 1
    found = project.runpytest(SHARE, "-p", "xdist", "-n", "2")
    found.stdout.fnmatch_lines([f"extended: share {int(name, 16) % 8} of 8 by commit {name[:8]}, {number} of 40 run"])
    found.assert_outcomes(passed=number + 1)
