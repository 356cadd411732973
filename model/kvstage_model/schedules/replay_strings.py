"""Schedules as short strings, and back: a failure prints one, and the same schedule is run again from it."""

import re

from .schedule import Choices, Hold, HoldPair, IssueOrder, Late, Schedule
from .seeded import RUN_DIGITS, SEED_DIGITS, Seeded

ISSUE_ORDER, LATE = "issue-order", "late"
FORMS = (ISSUE_ORDER, LATE, "hold:3:begin", "hold:3:end", "hold:3:end+5:end", "choices:1.0.2", "seeded:7:12")
"""One string of each kind."""


class ReplayStringError(ValueError):
    """A string that names no schedule."""


def to_string(schedule: object) -> str:
    """The string from which `from_string` makes the same schedule, unused. Raises TypeError for what has none."""
    match schedule:
        case Hold(index, half):
            return f"hold:{index}:{'end' if half else 'begin'}"
        case HoldPair():
            return f"hold:{schedule.first}:end+{schedule.second}:end"
        case Choices():
            return f"choices:{'.'.join(map(str, _shortest(schedule.first)))}"
        case Seeded():
            return f"seeded:{schedule.seed}:{schedule.run}"
        case IssueOrder():
            return ISSUE_ORDER
        case Late():
            return LATE
        case _:
            raise TypeError(f"schedule {schedule} has no string: only those of the drivers have one")


def from_string(text: str) -> Schedule:
    """A new schedule from a string like those in FORMS. Raises ReplayStringError for others."""
    if text == ISSUE_ORDER:
        return IssueOrder()
    if text == LATE:
        return Late()
    if found := re.fullmatch(r"hold:([0-9]{1,9}):(begin|end)", text):
        return Hold(int(found[1]), int(found[2] == "end"))
    if (found := re.fullmatch(r"hold:([0-9]{1,9}):end\+([0-9]{1,9}):end", text)) and int(found[1]) < int(found[2]):
        return HoldPair(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"choices:([0-9]{1,4}(?:\.[0-9]{1,4})*)", text):
        return Choices(tuple(map(int, found[1].split("."))))
    if found := re.fullmatch(rf"seeded:([0-9]{{1,{SEED_DIGITS}}}):([0-9]{{1,{RUN_DIGITS}}})", text):
        return Seeded(int(found[1]), int(found[2]))
    raise ReplayStringError(f"{text!r} names no schedule: copy the string that the failure printed, such as {', '.join(FORMS)}")


def _shortest(choices: tuple[int, ...]) -> tuple[int, ...]:
    """The choices without the zeros at their end, which are taken anyway; never none at all."""
    length = len(choices)
    while length > 1 and choices[length - 1] == 0:
        length -= 1
    return choices[:length] or (0,)
