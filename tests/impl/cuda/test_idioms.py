"""Right torch.cuda code is silent under all schedules, and its wrong twin is found."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.cuda_idioms.hazards import HAZARDS
from tests.support.cuda_idioms.idiom import Idiom, idiom
from tests.support.cuda_idioms.registry import IDIOMS, TOPICS
from tests.support.cuda_idioms.table import ALL, TWINS, Outcome, from_json
from tests.support.paths import ROOT

Table = dict[tuple[str, str], Outcome]

MISJUDGED = {
    ("numpy_view_is_written_after_the_event", "wrong"): "what the host writes through numpy is seen in the bytes only",
    ("threads_write_parts_of_their_own", "wrong"): "all host threads count as one",
    ("staging_is_allocated_on_another_stream_than_writes_it", "wrong"): "a new block counts as memory that was never used before",
}
"""Twins that the simulated device judges wrongly, and why."""


def each_idiom(twin: str) -> pytest.MarkDecorator:
    """All idioms; those whose twin is misjudged must fail."""
    params = []
    for each in ALL:
        reason = MISJUDGED.get((each.name, twin))
        params.append(pytest.param(each, id=each.name, marks=[pytest.mark.xfail(reason=reason)] if reason else []))
    return pytest.mark.parametrize("each", params)


def run(*arguments: str) -> Table:
    """The table, made in one process: the simulated device can't be taken out of a process again."""
    roots = os.pathsep.join(str(ROOT / each) for each in ("model", "impl", "proofs", "."))
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.cuda_idioms.table", "--json", *arguments]
    environment = os.environ | {"PYTHONPATH": roots}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {(each.name, each.twin): each for each in from_json(done.stdout)}


@pytest.fixture(scope="module")
def table() -> Table:
    """Both twins of all."""
    return run()


def told(outcome: Outcome) -> str:
    """All that the runs of a twin said."""
    runs = [f"{run.schedule}: gave {run.gave} {run.error}\n" + "\n".join(run.findings) for run in outcome.runs]
    return f"{outcome}\nshould give {outcome.gives}\n" + "\n".join(runs)


@each_idiom("right")
def test_right_code_is_silent_and_gives_the_right_bytes(each: Idiom, table: Table) -> None:
    outcome = table[each.name, "right"]
    assert outcome.as_it_should_be, told(outcome)


@each_idiom("wrong")
def test_its_wrong_twin_is_found_once_and_gives_wrong_bytes(each: Idiom, table: Table) -> None:
    outcome = table[each.name, "wrong"]
    assert outcome.as_it_should_be, told(outcome)
    assert max(len(run.findings) for run in outcome.runs[:2]) == 1, f"one wait is missing, and more is found: {told(outcome)}"


def test_the_table_has_all_twins_and_each_has_run(table: Table) -> None:
    assert set(table) == {(each.name, twin) for each in ALL for twin in TWINS}
    assert [told(outcome) for outcome in table.values() for run in outcome.runs if run.error or not run.gave] == []
    assert all([run.schedule for run in outcome.runs[:2]] == ["issue-order", "late"] for outcome in table.values())
    assert set(MISJUDGED) <= set(table)


@pytest.mark.extended
def test_right_code_gives_the_right_bytes_whatever_is_held_back() -> None:
    """Looks at the bytes alone, so that no idiom is right only because the race finder misses something."""
    outcomes = run("--delayed").values()
    assert len(outcomes) == len(ALL)
    assert all(len(outcome.runs) > 4 for outcome in outcomes)
    assert [told(outcome) for outcome in outcomes if outcome.wrong_under] == []


def test_there_are_enough_of_them_on_every_topic() -> None:
    assert len(IDIOMS) >= 60
    assert len(HAZARDS) >= 20
    assert set(Counter(each.name for each in ALL).values()) == {1}
    assert {each.topic for each in IDIOMS} == {topic.__name__.rpartition(".")[2] for topic in TOPICS}
    assert len({each.source for each in HAZARDS}) == len(HAZARDS)


def test_an_idiom_that_gives_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one number"):
        idiom("nowhere", gives=[])
