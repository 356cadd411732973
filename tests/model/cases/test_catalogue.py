"""The cases: every report of the list is a case, an instance of one, or out of reach; each bug breaks in a run, and no fix does."""

import inspect

import pytest

from kvstage_model import cases
from kvstage_model.cases import CASES, INSTANCES, OUT_OF_REACH, Case
from kvstage_model.ordering.races import HappensBefore
from kvstage_model.schedules.schedule import Replay
from kvstage_model.search.faults import hazard, out_of_bounds, wrong_rows
from kvstage_model.search.search import search
from tests.support.programs import overlapping, run

RACES = (
    "01 02 04 05 06 07 08 10 11 13 14 15 16 18 19 20 21 22 23 24 26 27 28 29 30 31 33 34 35 37 38 39 40 41 42 43 45 47 48 50 51 52 "
    "54 55 57 59 61 62 63 64 65 67 68 69 70 72 73 75 76 77 78 80 81 82 84 85"
)
NEGATIVES = "01 02 03 04 05 06 09 10 11 12 13 14 16 17 18 19 20 21 23 24"
REPORTS = [*(f"H{number}" for number in RACES.split()), *(f"N{number}" for number in NEGATIVES.split())]
"""The public reports that were collected, by their numbers."""
FAULTS = {"T1": hazard, "T3": wrong_rows, "T7": out_of_bounds}


def test_every_report_has_one_place() -> None:
    places = [*CASES, *INSTANCES, *OUT_OF_REACH]
    assert sorted(places) == sorted(REPORTS)
    assert len(set(places)) == len(places) == 86
    assert {of for of, _ in INSTANCES.values()} <= CASES.keys()
    assert all(OUT_OF_REACH.values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_smallest_instance_of_a_bug_breaks_and_none_of_its_fix_does(case: Case) -> None:
    found = search(case.bug, FAULTS[case.theorem])
    assert found is not None
    assert found.steps <= 6
    for fix in case.fixes:
        again = search(fix.scheme, FAULTS[case.theorem], 60)
        assert (again is not None) is fix.incomplete


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.theorem == "T1"], ids=lambda case: case.name)
def test_the_simulator_reproduces_the_race_of_a_bug(case: Case) -> None:
    found = search(case.bug, hazard)
    assert found is not None
    assert found.race is not None
    program = found.trace.program
    log = run(program, Replay(HappensBefore(program).schedule(found.race)))
    assert (found.race.first, found.race.second) in overlapping(program, log)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_case_is_told_in_full(case: Case) -> None:
    assert all("#" in report and "/" in report for report in case.reports)
    assert len(case.agents) >= 2
    assert case.fixes[-1].incomplete is False
    for scheme in (case.bug, *(fix.scheme for fix in case.fixes)):
        assert inspect.getdoc(scheme)
        assert inspect.getmodule(scheme) is not None
    assert cases.__doc__
