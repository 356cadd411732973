"""A checked device's run as a trace: what was issued, in which order it happened, as a file and as a picture."""

import pytest
import torch

from kvstage import CheckedDevice, ReleasedMemoryError
from kvstage_model.language.buffers import Memory
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import wording
from kvstage_model.ordering.races import races
from kvstage_model.schedules.schedule import Hold, IssueOrder, Schedule
from kvstage_model.traces.json_reader import read
from kvstage_model.traces.json_writer import as_json
from kvstage_model.traces.svg import as_svg


def finished(schedule: Schedule) -> CheckedDevice:
    """A device on which one of everything has happened, and a host write that may come too early."""
    device = CheckedDevice(schedule)
    pinned, pool, event = device.allocate(Memory.PINNED, 4), device.host_view(torch.zeros(2, 2, 4), Memory.DEVICE), device.event()
    rows = device.host_view(torch.ones(1, 4), Memory.PINNED)
    pinned[:2] = 1
    device.copy("h2d", pinned, pool[0, 0, :1])
    device.record(event, "h2d")
    pinned[1:] = 2
    device.wait_event("k", event)
    device.scatter("k", rows, pool, [3])
    while not device.query(event):
        pass
    device.wait(event)
    device.synchronize("k")
    device.host_copy(pool[0, 0, :1], pinned)
    device.copy("k", pinned[:0], pinned[2:2])
    device.finish()
    return device


PROGRAM = [
    "HostWrite pinned 0[0].rows[0:2]",
    "Copy pinned 0[0].rows[0:4] -> device 1[0].rows[0:4] on stream h2d",
    "RecordEvent event[0] on stream h2d",
    "HostWrite pinned 0[0].rows[1:4]",
    "WaitEvent event[0] on stream k",
    "Launch pinned 2[0].rows[0:16] -> device 1[0].rows[48:64] on stream k",
    "QueryEvent event[0]",
    "SyncEvent event[0]",
    "SyncStream on stream k",
    "HostCopy device 1[0].rows[0:4] -> pinned 0[0].rows[0:4]",
    "Copy no memory[0].rows[0:0] -> no memory[0].rows[0:0] on stream k",
]


@pytest.mark.parametrize("schedule", [IssueOrder(), Hold(0, 1), Hold(1, 0)])
def test_everything_is_there_and_has_begun_before_it_ended(schedule: Schedule) -> None:
    trace = finished(schedule).trace()
    asked = 2 if schedule == Hold(0, 1) else 1  # first "not yet", many times over, then yes
    program = [*PROGRAM[:6], *PROGRAM[6:7] * asked, *PROGRAM[7:]]
    assert [wording(issued.operation) for issued in trace.program] == program
    places = {(event.index, event.moment): at for at, event in enumerate(trace.events)}
    assert len(places) == len(trace.events) == 2 * len(program)
    assert all(places[index, Moment.BEGIN] < places[index, Moment.END] for index in range(len(program)))
    order = [event.index for event in trace.events if trace.program[event.index].agent == "host"]
    assert order == sorted(order), "the host does one thing after the other"


def test_under_the_schedule_of_a_finding_the_two_overlap_in_the_trace() -> None:
    for schedule, overlap in ((IssueOrder(), False), (Hold(0, 1), True)):
        trace = finished(schedule).trace()
        (race, *_) = races(trace.program)
        assert (race.first, race.second) == (1, 3)
        places = {(event.index, event.moment): at for at, event in enumerate(trace.events)}
        assert (places[3, Moment.BEGIN] < places[1, Moment.END]) == overlap


def test_it_can_be_written_and_drawn() -> None:
    trace = finished(Hold(0, 1)).trace()
    text = as_json(trace)
    back = read(text.encode()).trace
    assert as_json(back) == text
    picture = as_svg(trace, next(iter(races(trace.program))))
    assert picture.startswith("<svg")
    assert "pinned 0" in picture


def test_memory_that_is_dropped_is_an_access_where_it_happens() -> None:
    device = CheckedDevice(Hold(0, 1))
    table, pinned = device.allocate(Memory.DEVICE, 4), device.allocate(Memory.PINNED, 4)
    device.copy("h2d", pinned, table)
    del pinned
    device.synchronize("h2d")
    assert type(device.finish()) is ReleasedMemoryError
    events = [(event.index, event.moment) for event in device.trace().events]
    assert wording(device.trace().program[1].operation) == "HostWrite pinned 1[0].rows[0:4]"
    assert events.index((1, Moment.END)) < events.index((0, Moment.END))
