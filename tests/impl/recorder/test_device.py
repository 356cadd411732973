"""The recorder: what it notes, when it happened, and what can't be recorded."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from kvstage import PagedPool, SimDevice, Stager, ThreadDevice
from kvstage.recorder.device import RecordingDevice, Timed
from kvstage.recorder.operands import RecorderError
from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import Copy, Gather, QueryEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.schedule import Hold, IssueOrder
from kvstage_model.schemes.registry import LIBRARY, usual_chunk
from kvstage_model.traces.check import check
from kvstage_model.traces.json_reader import read
from kvstage_model.traces.json_writer import as_json
from tests.support.devices import REAL
from tests.support.plain import plain_read, random_blocks, same

TABLE = [3, 1, 0]
ROWS = PagedRows(TABLE.__getitem__, 4, 2, 1, 6)


def scheme(name: str):
    options = {"slots": 2} if name in ("ring", "gather") else {}
    return LIBRARY[name].read(ROWS, **options, **({"chunk": usual_chunk(ROWS)} if name in ("gather", "gather_copy") else {}))


def recorded(name: str, calls: int = 1, timed: bool = False, kind: Callable[[], Any] = ThreadDevice) -> Trace:
    """The trace of reads on a device."""
    blocks = random_blocks(1, 4, 2, (3,), torch.uint8)
    with RecordingDevice(kind(), timed=timed) as device:
        stager = Stager(device, scheme=name, slots=2 if name in ("ring", "gather") else None)
        for _ in range(calls):
            with device.call():
                transfer = stager.read(PagedPool(blocks.tensor), TABLE, 1, 6)
                transfer.wait()
        assert same(transfer.result(), plain_read(blocks.tensor, TABLE, 1, 6))
        for stream in ("kvstage copy", "kvstage compute"):
            device.synchronize(stream)
    return device.trace()


SOME = ("per_row", "per_block", "direct", "ring", "gather_pinned", "gather")


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_a_recorded_run_is_its_schemes_by_names_of_its_own(name: str, timed: bool, kind: str) -> None:
    trace = recorded(name, 2, timed, REAL[kind])
    assert check(trace, scheme(name)) == ()
    assert check(read(as_json(trace).encode()).trace, scheme(name)) == ()
    assert all((event.at is not None) == timed for event in trace.events)
    assert len(trace.events) == 2 * len(trace.program)


@pytest.mark.parametrize("name", SOME)
def test_twin_it_is_no_other_schemes(name: str) -> None:
    trace = recorded(name)
    for other in SOME:
        if other != name:
            assert check(trace, scheme(other)), other


def test_work_without_times_is_as_late_as_the_waits_allow() -> None:
    events = [(event.index, event.moment) for event in recorded("direct").events]
    copies, mark, wait = (0, 1, 2), 3, 4
    work = [(index, moment) for index in (*copies, mark) for moment in (Moment.BEGIN, Moment.END)]
    assert events[: len(work) + 2] == [(wait, Moment.BEGIN), *work, (wait, Moment.END)]


def test_times_are_the_devices_own() -> None:
    trace = recorded("per_row", timed=True)
    at = {(event.index, event.moment): event.at or 0 for event in trace.events}
    copies = [index for index, issued in enumerate(trace.program) if isinstance(issued.operation, Copy)]
    assert len(copies) == 5
    for index in copies:
        wait = index + 1
        assert 0 < at[index, Moment.BEGIN] <= at[index, Moment.END] <= at[wait, Moment.END]
    assert [event.at for event in trace.events] == sorted(at.values())


def test_a_device_that_knows_no_times_is_not_asked_for_them() -> None:
    simulated = SimDevice(IssueOrder())
    assert not isinstance(simulated, Timed)
    with pytest.raises(RecorderError, match="SimDevice does not know when its work runs"):
        RecordingDevice(simulated, timed=True)


def test_memory_is_known_by_address_and_shape_and_may_be_named() -> None:
    pool, out = torch.zeros(4, 2, 3, dtype=torch.uint8), torch.zeros(1, 5, 3, dtype=torch.uint8)
    device = RecordingDevice(SimDevice(IssueOrder()))
    device.name(pool, "cache")
    first, again = device.view(Memory.DEVICE, pool), device.view(Memory.DEVICE, pool)
    other = device.view(Memory.PINNED, out)
    assert first.buffer is again.buffer
    assert (first.buffer.name, first.buffer.slots, first.buffer.rows) == ("cache", 4, 2)
    assert other.buffer.name == "pinned 1"
    device.copy("s", first[3, 0:2], other[0, 1:3])
    device.gather("s", first, np.array([7, 2]), other[0, 3:5])
    copy, gather = (issued.operation for issued in device.program)
    assert isinstance(copy, Copy)
    assert isinstance(gather, Gather)
    assert (copy.source.slot, copy.source.start, copy.source.count, copy.target.start) == (3, 0, 2, 1)
    assert [gather.source.rows.address(k) for k in range(2)] == [(3, 1), (1, 0)]


def test_what_does_not_say_where_its_bytes_are_is_refused() -> None:
    memory = torch.zeros(1, 2, 3, dtype=torch.uint8)
    device: Any = RecordingDevice(SimDevice(IssueOrder()))
    view = device.view(Memory.PINNED, memory)
    with pytest.raises(RecorderError, match="a bytearray can't be recorded"):
        device.copy("s", bytearray(3), view[0, 0:1])
    with pytest.raises(RecorderError, match="which is a whole view"):
        device.gather("s", view[0, 0:1], np.array([0]), view[0, 1:2])
    assert device.program == ()


def test_queries_in_a_row_that_say_not_yet_are_one() -> None:
    memory = torch.zeros(1, 2, 3, dtype=torch.uint8)
    with RecordingDevice(SimDevice(Hold(0, 0))) as device:
        view, event = device.view(Memory.PINNED, memory), device.event()
        device.copy("s", view[0, 0:1], view[0, 1:2])
        device.record(event, "s")
        asked = 1
        while not device.query(event):
            asked += 1
    assert asked > 2
    answers = [issued.operation.answer for issued in device.program if isinstance(issued.operation, QueryEvent)]
    assert answers == [0, 1]


def test_what_raises_is_not_noted() -> None:
    class Failing(ThreadDevice):
        def synchronize(self, stream: str) -> None:
            raise KeyboardInterrupt

    with RecordingDevice(Failing()) as device:
        with pytest.raises(KeyboardInterrupt):
            device.synchronize("s")
        assert device.program == ()


def test_two_host_threads_at_once_are_no_trace() -> None:
    with RecordingDevice(ThreadDevice()) as device:
        view = device.view(Memory.PINNED, torch.zeros(1, 2, 3, dtype=torch.uint8))
        event = device.event()
        with device.hold(lambda stream, index: True) as hold:
            device.copy("s", view[0, 0:1], view[0, 1:2])
            device.record(event, "s")
            waiting = threading.Thread(target=device.synchronize, args=("t",))
            waiting.start()
            waiting.join()
            assert device.trace().program
            slow = threading.Thread(target=lambda: [device.query(event) for _ in range(2)])
            slow.start()
            slow.join()
            assert len(device.program) == 4
            hold.release()
        first, second = device.noted[1], device.noted[2]
        device.noted[2] = type(second)(second.issued, second.thread, first.begin, second.end)
        with pytest.raises(RecorderError, match="two host threads"):
            device.trace()
