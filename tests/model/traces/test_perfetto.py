"""Traces for Perfetto: complete slices, one track an agent, an arrow for a race, real times where there are some."""

import itertools
import json
from typing import Any

from kvstage_model import schemes
from kvstage_model.language.edits import Named, without
from kvstage_model.language.operations import SyncStream
from kvstage_model.language.partitions import by_block
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore, races
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.traces.perfetto import as_chrome
from tests.support.traces import ROWS, good


def slices(text: str, phase: str = "X") -> list[Any]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def test_every_operation_is_a_slice_on_its_agents_track() -> None:
    trace = good()
    text = as_chrome(trace)
    names = {event["tid"]: event["args"]["name"] for event in slices(text, "M") if event["name"] == "thread_name"}
    assert list(names.values()) == ["host", "stream copy"]
    assert len(slices(text)) == len(trace.program)
    for event in slices(text):
        agent = trace.program[event["args"]["operation"]].agent
        assert names[event["tid"]] in (agent, f"stream {agent}")
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid"} <= set(event)


def test_slices_of_a_track_follow_one_another() -> None:
    """Perfetto shows slices that overlap on one track nested or not at all."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for event in slices(as_chrome(good())):
        spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for track in spans.values():
        track.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(track))


def test_measured_times_are_kept_in_microseconds_from_the_first() -> None:
    trace = good()
    timed = Trace(trace.program, tuple(TraceEvent(e.index, e.moment, 5_000_000 + 1_500 * k) for k, e in enumerate(trace.events)))
    begun = sorted(event["ts"] for event in slices(as_chrome(timed)))
    assert begun[0] == 0
    assert begun[1] == 1.5
    steps = sorted(event["ts"] for event in slices(as_chrome(trace)))
    assert (steps[0], steps[1]) == (0, 1)


def test_an_arrow_joins_the_accesses_of_a_race() -> None:
    program = unroll([without(Named(SyncStream))(schemes.staged_read(by_block(ROWS)))])
    race = next(races(program))
    text = as_chrome(HappensBefore(program).schedule(race).until(race.first, race.second), race)
    (start,), (finish,) = slices(text, "s"), slices(text, "f")
    assert start["id"] == finish["id"]
    assert {event["args"]["operation"] for event in slices(text) if event["cat"] == "race"} == {race.first, race.second}
    assert slices(as_chrome(good()), "s") == []


def test_what_has_not_ended_ends_with_the_trace() -> None:
    trace = good()
    cut = Trace(trace.program, trace.events[:1])
    (event,) = slices(as_chrome(cut))
    assert event["dur"] == 0
    longer = Trace(trace.program, trace.events[:2])
    assert all(event["ts"] + event["dur"] == 1 for event in slices(as_chrome(longer)))
