"""Schedules to strings and back."""

from functools import partial
from itertools import islice

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostRead
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.replay_strings import FORMS, ReplayStringError, from_string, to_string
from kvstage_model.schedules.schedule import Choices, Hold, HoldPair, IssueOrder, Late, Replay, ReplayError
from kvstage_model.schedules.seeded import seeded
from tests.support.programs import issued, run

STAGE = Buffer("stage", Memory.PINNED, 1, 2)
A, B = STAGE.at(0, 0, 1), STAGE.at(0, 1, 1)
PROGRAM = issued([Copy("one", A, B), Copy("two", A, B), HostRead(A), Copy("one", B, A)])

DRIVERS = {
    "delays": delays(partial(run, PROGRAM)),
    "exhaustive": islice(exhaustive(partial(run, PROGRAM)), 200),
    "seeded": seeded(partial(run, PROGRAM), 11, 30),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_schedule_from_its_string_gives_the_same_run(driver: str) -> None:
    seen = set()
    for schedule, log in DRIVERS[driver]:
        text = to_string(schedule)
        assert run(PROGRAM, from_string(text)) == log
        assert to_string(from_string(text)) == text
        seen.add(text)
    assert len(seen) > 5, "each has a string of its own"


def test_strings_are_short_and_readable() -> None:
    schedules = [IssueOrder(), Late(), Hold(3, 0), Hold(3, 1), HoldPair(3, 5), Choices((1, 0, 2, 0, 0)), Choices(())]
    found = [to_string(schedule) for schedule in schedules]
    assert found == ["issue-order", "late", "hold:3:begin", "hold:3:end", "hold:3:end+5:end", "choices:1.0.2", "choices:0"]


@pytest.mark.parametrize("text", FORMS)
def test_every_form_is_one(text: str) -> None:
    assert to_string(from_string(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "hold", "hold:3", "hold:-1:end", "hold:3:middle", "choices:", "choices:1..2", "seeded:1", "hold:³:end"],
)
def test_other_strings_are_refused(text: str) -> None:
    with pytest.raises(ReplayStringError, match="names no schedule: copy the string"):
        from_string(text)


def test_a_replayed_trace_has_no_string() -> None:
    with pytest.raises(TypeError, match="has no string"):
        to_string(Replay(Trace(PROGRAM, ())))


def test_choices_of_other_code_can_not_be_followed() -> None:
    with pytest.raises(ReplayError, match="choice 0 of choices 5, then 0 is number 5, but only host, stream one"):
        run(PROGRAM, from_string("choices:5"))
