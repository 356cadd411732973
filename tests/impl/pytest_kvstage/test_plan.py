"""What a test's mark says, and what it must not say."""

from typing import Any

import pytest

from kvstage_model.schedules.drivers import TooManySchedulesError
from kvstage_model.schedules.replay_strings import from_string, to_string
from kvstage_model.schedules.schedule import Choices, Hold, IssueOrder, Late, Move, Schedule
from kvstage_model.schedules.seeded import Seeded
from pytest_kvstage.plan import MOST, RUNS, MarkError, Plan, plan_of

MOVES = (Move(None), Move("copy", 0, 0))


def kinds(plan: Plan) -> list[type]:
    """The schedules that a plan gives to code with one choice."""

    def choose(schedule: Schedule) -> None:
        schedule.choose(MOVES)

    return [type(schedule) for schedule, _ in plan.drive(choose)]


def test_without_a_mark_there_are_delays() -> None:
    plan = plan_of((), {}, None)
    assert str(plan) == "delays"
    assert kinds(plan) == [IssueOrder, Late, Hold, Hold]


def test_every_choice() -> None:
    assert kinds(plan_of((), {"schedules": "exhaustive"}, None)) == [Choices, Choices]
    assert plan_of((), {"schedules": "exhaustive"}, None).runs == MOST
    with pytest.raises(TooManySchedulesError, match="more than 1 schedules"):
        kinds(plan_of((), {"schedules": "exhaustive", "runs": 1}, None))


def test_seeds() -> None:
    plan = plan_of((), {"schedules": "seeded", "seed": 9, "runs": 3}, None)
    assert str(plan) == "seeded, seed 9"
    assert [str(schedule) for schedule, _ in plan.drive(lambda schedule: None)] == [f"seed 9, run {run}" for run in range(3)]
    drawn = [plan_of((), {"schedules": "seeded"}, None) for _ in range(8)]
    assert len({plan.seed for plan in drawn}) > 1
    assert {plan.runs for plan in drawn} == {RUNS}


def test_a_replay_is_that_schedule_alone() -> None:
    plan = plan_of((), {"schedules": "exhaustive"}, "seeded:4:2")
    ((schedule, _),) = plan.drive(lambda schedule: None)
    assert isinstance(schedule, Seeded)
    assert (schedule.seed, schedule.run, str(plan)) == (4, 2, "seeded:4:2")


def test_the_largest_seed_and_run_have_a_string() -> None:
    plan = plan_of((), {"schedules": "seeded", "seed": 10**20 - 1, "runs": 10**9 - 1}, None)
    assert plan.seed is not None
    last = from_string(to_string(Seeded(plan.seed, plan.runs)))
    assert isinstance(last, Seeded)
    assert (last.seed, last.run) == (plan.seed, plan.runs)


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        (("delays",), {}, "an argument without a name: it takes schedules=, runs= and seed= alone"),
        ((), {"schedule": "delays"}, "has schedule: it takes"),
        ((), {"schedules": "all"}, "'all'\\): it must be 'delays', 'exhaustive' or 'seeded'"),
        ((), {"runs": 3}, "'delays' has no runs"),
        ((), {"schedules": "seeded", "runs": 0}, "runs must be an integer from 1 on"),
        ((), {"schedules": "exhaustive", "seed": 1}, "'exhaustive' has no seed"),
        ((), {"schedules": "seeded", "seed": "x"}, "seed must be an integer from 0 on"),
        ((), {"schedules": "seeded", "seed": -1}, "seed must be an integer from 0 on"),
        ((), {"schedules": "seeded", "seed": 10**20}, "seed must be an integer from 0 on, of at most 20 digits"),
        ((), {"schedules": "seeded", "runs": 10**9}, "runs must be an integer from 1 on, of at most 9 digits"),
        ((), {"schedules": "seeded", "runs": True}, "runs must be an integer from 1 on"),
    ],
)
def test_what_makes_no_sense_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any], match: str) -> None:
    with pytest.raises(MarkError, match=match):
        plan_of(args, kwargs, None)
