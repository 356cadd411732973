"""What tests do to devices that are really asynchronous: hold their work back, wait from several threads, take their times."""

import threading

import pytest

from kvstage import DeviceError
from tests.support.devices import REAL, everything, ones, zeros

SECONDS = 20
"""How long a test waits for a thread before it calls it hung."""


@pytest.fixture(params=REAL)
def device(request):
    with REAL[request.param]() as device:
        yield device


def copy(device, stream, source, target):
    device.copy(stream, source.handle, target.handle)


def test_a_held_copy_has_not_happened_and_the_host_goes_on(device):
    source, first, second = ones(device), zeros(device), zeros(device)
    with device.hold(lambda _stream, index: index == 0) as held:
        copy(device, "a", source, first)
        copy(device, "b", source, second)
        device.synchronize("b")
        assert (first.sum, second.sum) == (0, 4)
        held.release()
        copy(device, "b", zeros(device), second)  # nothing is held any more
        device.synchronize("a")
        device.synchronize("b")
        assert (first.sum, second.sum) == (4, 0)
    assert (device.copies, device.waits) == (3, 3)


def test_what_stands_behind_a_held_copy_waits_with_it(device):
    first, second = zeros(device), zeros(device)
    with device.hold(lambda _stream, index: index == 0):
        copy(device, "a", ones(device), first)
        copy(device, "a", first, second)
        assert second.sum == 0
    device.synchronize("a")
    assert second.sum == 4


def test_a_wait_lets_go_of_its_own_stream_only(device):
    first, second = zeros(device), zeros(device)
    with device.hold(everything):
        copy(device, "a", ones(device), first)
        copy(device, "b", ones(device), second)
        device.synchronize("a")
        assert (first.sum, second.sum) == (4, 0)


def test_one_hold_and_one_timing_at_a_time(device):
    with device.hold(everything), pytest.raises(DeviceError, match="held already"):
        device.hold(everything).__enter__()
    with device.timed(), pytest.raises(DeviceError, match="timed already"):
        device.timed().__enter__()


def test_an_event_waits_for_its_last_record_and_not_for_more(device):
    first, second, third, event = zeros(device), zeros(device), zeros(device), device.event()
    with device.hold(everything):
        copy(device, "a", ones(device), first)
        device.record(event, "a")
        copy(device, "a", ones(device), second)
        assert not device.query(event)
        device.wait(event)
        assert device.query(event)
        assert (first.sum, second.sum) == (4, 0)
        device.record(event, "a")
        copy(device, "a", ones(device), third)
        assert not device.query(event)
        device.wait(event)
        assert (second.sum, third.sum) == (4, 0)


def test_the_last_record_counts_even_on_another_stream(device):
    first, second, event = zeros(device), zeros(device), device.event()
    with device.hold(everything):
        copy(device, "a", ones(device), first)
        device.record(event, "a")
        copy(device, "b", ones(device), second)
        device.record(event, "b")
        device.wait(event)
        assert (first.sum, second.sum) == (0, 4)


def test_a_stream_waits_for_what_the_event_marked_when_the_wait_was_issued(device):
    first, second, later, event = zeros(device), zeros(device), zeros(device), device.event()
    with device.hold(lambda stream, _index: stream == "a"):
        copy(device, "a", ones(device), first)
        device.record(event, "a")
        device.wait_event("b", event)
        copy(device, "b", first, second)
        copy(device, "a", ones(device), later)
        device.record(event, "a")
        device.synchronize("b")  # lets go of what b waits for, and not of what was issued on a behind it
        assert (first.sum, second.sum, later.sum) == (4, 4, 0)


def test_twin_without_the_streams_wait_it_reads_too_early(device):
    first, second = zeros(device), zeros(device)
    with device.hold(lambda stream, _index: stream == "a"):
        copy(device, "a", ones(device), first)
        copy(device, "b", first, second)
        device.synchronize("b")
        assert (first.sum, second.sum) == (0, 0)


def test_several_threads_may_wait_for_one_event(device):
    event, target, seen = device.event(), zeros(device), []
    with device.hold(everything) as held:
        copy(device, "a", ones(device), target)
        device.record(event, "a")

        def wait() -> None:
            device.wait(event)
            seen.append(target.sum)

        threads = [threading.Thread(target=wait) for _ in range(4)]
        held.release()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert seen == [4] * 4


def test_everything_on_a_stream_has_a_span_in_the_order_of_issue(device):
    first, second, event = zeros(device), zeros(device), device.event()
    copy(device, "a", ones(device), zeros(device))
    with device.timed() as spans, device.hold(everything):
        device.wait_event("b", event)
        copy(device, "a", ones(device), first)
        device.record(event, "a")
        device.wait_event("b", event)
        copy(device, "b", first, second)
        assert [(span.begin, span.end) for span in spans[1:]] == [(0, 0)] * 4
        device.synchronize("b")
    device.synchronize("a")
    copy(device, "a", ones(device), zeros(device))
    assert [span.stream for span in spans] == list("baabb")
    assert all(0 < span.begin <= span.end for span in spans)
    _, moved, marked, held_up, moved_on = spans
    assert moved.end <= marked.end <= held_up.end <= moved_on.begin
