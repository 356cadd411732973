"""When work began and ended, as a device measured it: for tests of the axioms, and for recorders of runs."""

import time
from dataclasses import dataclass


def now() -> int:
    """Nanoseconds on the clock of all spans. It is PoCL's, so that the host and its driver can be compared."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@dataclass(slots=True, eq=False)
class Span:
    """One piece of work of a stream: a copy, a kernel, a record or a stream's wait.

    `begin` and `end` are as `now` counts; both are 0 until a wait that covers the work has returned.
    """

    stream: str
    begin: int = 0
    end: int = 0
