"""Staging loops with the mistakes of public bug reports: each is found, and its right twin is silent, in every kind of build.

Without a sanitizer schedules show the wrong bytes. ThreadSanitizer sees the race by itself, in the order of issue already, but for
a query whose answer tells. AddressSanitizer sees memory that is freed too early.
"""

import re
import subprocess

import pytest

from kvstage_cpp.build import Toolchain
from kvstage_cpp.judge import Verdict, judge
from tests.support.cpp_cases import CASES, NAMES, OTHERS, STANDARD, Cases, sanitized

SANITIZED = ("issue-order", "late")
TELLS = {"query_poll"}
"""Here the race is there under some schedules only: in issue order the query says, rightly, that the copy has ended."""
FREED = {"free_early", "h20_local_source_that_was_pinned", "h63_freed_on_another_stream"}
"""Of these AddressSanitizer's builds tell as well."""


def kinds(verdict: Verdict) -> set[str]:
    return {finding.kind for finding in verdict.findings}


def check(cases: Cases, toolchain: Toolchain, name: str) -> None:
    """All that holds for one case, in builds by one compiler."""
    plain = judge([cases(toolchain), name, "wrong"])
    assert kinds(plain) & {"FAILS", "FREED"}, "no schedule shows it"
    assert len(plain.runs) > 10
    assert judge([cases(toolchain), name, "right"]).findings == ()

    thread = cases(sanitized(toolchain, "thread"))
    races = [finding for finding in judge([thread, name, "wrong"], SANITIZED).findings if finding.kind == "RACE"]
    assert races, "ThreadSanitizer sees nothing"
    assert ("issue-order" in races[0].schedules) == (name not in TELLS)
    lines = [place.line for place in races[0].places if place.label in ("first", "second")]
    assert len(lines) == 2
    assert all(re.match(r"\w+\.[ch]pp:\d+: \S", line) for line in lines), lines
    assert judge([thread, name, "right"], SANITIZED).findings == ()

    address = cases(sanitized(toolchain, "address"))
    found = judge([address, name, "wrong"], SANITIZED)
    assert bool(kinds(found) & {"FREED", "MEMORY"}) == (name in FREED)
    assert judge([address, name, "right"], SANITIZED).findings == ()


def test_there_are_eight_kinds_and_twenty_more() -> None:
    assert len([name for name in NAMES if not re.match(r"h\d\d_", name)]) == 8
    assert len([name for name in NAMES if re.match(r"h\d\d_", name)]) >= 20
    assert {file.name for file in CASES} == {"main.cpp", "eight.cpp", "host_memory.cpp", "streams_and_threads.cpp"}


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_loop_is_found_and_the_right_one_is_silent(cases: Cases, name: str) -> None:
    check(cases, STANDARD, name)


@pytest.mark.extended
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("toolchain", OTHERS, ids=lambda each: f"{each.compiler}-{each.standard}")
def test_the_same_by_another_compiler(cases: Cases, toolchain: Toolchain, name: str) -> None:
    check(cases, toolchain, name)


@pytest.mark.parametrize("sanitizer", ["", "thread", "address"])
def test_the_cases_are_in_the_program(cases: Cases, sanitizer: str) -> None:
    listed = subprocess.run([cases(sanitized(STANDARD, sanitizer))], capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == sorted(NAMES)
