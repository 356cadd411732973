"""From times to a trace: what a recorder noted, and what its device measured, in the order in which it happened."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvstage_model.language.operations import OnStream
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import TraceEvent

from ..devices.timing import Span


@dataclass(frozen=True, slots=True, eq=False)
class RecordedOperation:
    """An operation, the thread that asked for it, and when its call began and ended: nanoseconds, or just an order."""

    issued: Issued
    thread: int
    begin: int
    end: int


def measured(noted: Sequence[RecordedOperation], spans: Sequence[Span]) -> tuple[TraceEvent, ...]:
    """All events in the order of their times. `spans` has one for each operation on a stream, in the order of `noted`.

    What has not ended, as far as a wait has shown, has no events.
    """
    happened: list[TraceEvent] = []
    on_streams = iter(spans)
    for index, each in enumerate(noted):
        begin, end = each.begin, each.end
        if isinstance(each.issued.operation, OnStream):
            span = next(on_streams)
            begin, end = span.begin, span.end
        if end:
            happened += [TraceEvent(index, Moment.BEGIN, begin), TraceEvent(index, Moment.END, end)]
    return tuple(sorted(happened, key=lambda event: event.at or 0))  # stable: of equal times, what was issued first
