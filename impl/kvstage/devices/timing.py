"""When work began and ended, as a device measured it: for tests of the axioms, and for recorders of runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import DeviceError


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


class Timing:
    """What a device that measures its work has: spans, while they are asked for."""

    _spans: list[Span] | None = None

    @contextmanager
    def timed(self) -> Iterator[list[Span]]:
        """For tests and recorders: a span for everything that is put on a stream inside the `with`, in the order of issue.

        One at a time: raises DeviceError inside another one.
        """
        if self._spans is not None:
            raise DeviceError("this device is timed already: leave the first `timed` before the next")
        spans: list[Span] = []
        self._spans = spans
        try:
            yield spans
        finally:
            self._spans = None

    def _span(self, stream: str) -> Span | None:
        """The span of the next work of a stream, if it is asked for."""
        if self._spans is None:
            return None
        span = Span(stream)
        self._spans.append(span)
        return span
