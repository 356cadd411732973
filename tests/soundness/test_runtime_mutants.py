"""Each mistake in the runtime or the device is caught by `delays` alone; without mistakes every schedule is right."""

from contextlib import suppress
from functools import partial

import pytest

from kvstage import KVStageError
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.schedule import IssueOrder
from tests.support.mutants import MUTANTS
from tests.support.tiers import often
from tests.support.turns import RUNS, one_call


def caught(run) -> bool:
    """Whether some delay gives wrong bytes, or an error of the library."""
    try:
        return any(not right for _, right in delays(run))
    except KVStageError:
        return True


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_delays_catch_each_mutant(mutant, watch):
    """By its bytes: that it drifts from its scheme, if it does, is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        assert caught(RUNS[mutant.run])
    watch.taken()


def test_there_are_thirty_and_no_two_have_one_name():
    names = [mutant.what for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 30


def test_most_of_them_show_nowhere_in_the_order_of_issue(watch):
    """Where every work is done as soon as it is issued, as on a fake device that copies at once."""
    unseen = []
    for mutant in MUTANTS:
        with pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch)
            with suppress(KVStageError):
                unseen += [mutant.what] if RUNS[mutant.run](IssueOrder()) else []
    watch.taken()
    assert len(unseen) > 30


@pytest.mark.parametrize("name", often(RUNS, 8))
def test_without_a_mutant_the_same_calls_are_right_under_every_delay(name):
    results = list(delays(RUNS[name]))
    assert len(results) >= 5
    assert [schedule for schedule, right in results if not right] == []


SMALL = [("staged", 3), ("ring(2)", 3), ("direct", 3), ("gather_pinned", 3), ("gather_host", 3)]
LARGE = [("gather(1, 1)", "read"), ("gather(1, 1)", "write")]


def right_under_every_schedule(name: str, direction: str, blocks: int) -> int:
    """How many schedules there are; none of them is wrong. A scheme that waits for each copy leaves one alone."""
    results = list(exhaustive(partial(one_call, name, direction, blocks)))
    assert [schedule for schedule, right in results if not right] == []
    return len(results)


@pytest.mark.parametrize(("name", "blocks"), SMALL)
@pytest.mark.parametrize("direction", often(["read", "write"], 1))
def test_without_a_mutant_every_schedule_is_right(name, blocks, direction):
    schedules = right_under_every_schedule(name, direction, blocks)
    assert schedules > 900 if name == "ring(2)" else schedules >= (1 if name == "staged" else 3)


@pytest.mark.extended
@pytest.mark.parametrize(("name", "direction"), LARGE)
def test_without_a_mutant_every_schedule_of_a_gather_is_right(name, direction):
    assert right_under_every_schedule(name, direction, 2) > 5000
