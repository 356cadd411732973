"""Who goes on next: the order in which streams and host move, in a simulated run.

Read `schedule` first. `drivers` runs code once for each schedule that is worth it, `seeded` draws them, `replay_strings` writes
one down.
"""

from .drivers import NothingAsynchronousError, TooManySchedulesError, delays, exhaustive
from .replay_strings import ReplayStringError, from_string, to_string
from .schedule import Choices, Hold, HoldPair, IssueOrder, Late, Move, Replay, ReplayError, Schedule
from .seeded import Seeded, seeded

__all__ = [
    "Choices",
    "Hold",
    "HoldPair",
    "IssueOrder",
    "Late",
    "Move",
    "NothingAsynchronousError",
    "Replay",
    "ReplayError",
    "ReplayStringError",
    "Schedule",
    "Seeded",
    "TooManySchedulesError",
    "delays",
    "exhaustive",
    "from_string",
    "seeded",
    "to_string",
]
