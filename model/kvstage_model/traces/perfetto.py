"""A trace in Chrome's trace format, as https://ui.perfetto.dev and chrome://tracing open it: one lane an agent."""

import json
from collections.abc import Iterator

from ..ordering.axioms import Moment
from ..ordering.program import describe
from ..ordering.races import Race
from ..ordering.trace import Trace

PROCESS = 1
"""All lanes belong to one process."""
A_STEP = 1000
"""Nanoseconds between two events whose times are not known: only their order is."""


def as_chrome(trace: Trace, race: Race | None = None) -> str:
    """The trace as JSON in the format "JSON Object". Times that were measured are kept; others are steps of a microsecond.

    The two accesses of a `race` are in the category "race", joined by an arrow. What has not ended ends with the trace.
    """
    events = [*_lanes(trace), *_slices(trace, race)]
    listed = ",\n".join(f"  {json.dumps(event)}" for event in events)
    return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{listed}\n]}}\n'


def _lanes(trace: Trace) -> Iterator[dict[str, object]]:
    for number, name in enumerate(trace.lanes().values()):
        yield {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": number, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": PROCESS, "tid": number, "args": {"sort_index": number}}


def _slices(trace: Trace, race: Race | None) -> Iterator[dict[str, object]]:
    lanes = {lane: number for number, lane in enumerate(trace.lanes())}
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    first = trace.events[0].at if trace.events else None
    for place, event in enumerate(trace.events):
        at = place * A_STEP if event.at is None or first is None else event.at - first
        (begun if event.moment is Moment.BEGIN else ended)[event.index] = at
    last = max([*begun.values(), *ended.values()], default=0)
    racing: tuple[int, ...] = (race.first, race.second) if race else ()
    for index, begin in begun.items():
        issued = trace.program[index]
        where = {"pid": PROCESS, "tid": lanes[trace.lane(index)], "ts": begin / 1000}
        about = {"call": issued.call, "phase": issued.phase, "step": issued.step, "operation": index}
        category = "race" if index in racing else type(issued.operation).__name__
        duration = (ended.get(index, last) - begin) / 1000
        yield {"ph": "X", "name": describe(issued), "cat": category, **where, "dur": duration, "args": about}
        if index in racing:
            arrow = {"ph": "s"} if index == racing[0] else {"ph": "f", "bp": "e"}
            yield {**arrow, "name": "no order", "cat": "race", "id": 1, **where}
