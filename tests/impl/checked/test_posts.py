"""A network card or a disk: an agent outside streams, which the host alone can order."""

import pytest
import torch

from kvstage import CheckedDevice, DeviceError, HostAccessError, LayoutError, RaceError, StagingError
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.schedule import IssueOrder, Schedule

WIDTH = 4


def send(device: CheckedDevice, *, waits: bool = True, event: bool = False, takes: bool = True) -> list[int]:
    """A stream writes pages, a card sends them; then the pages are written anew."""
    rows = device.host_view(torch.arange(1, 1 + WIDTH, dtype=torch.uint8), Memory.PINNED)
    pages, remote = device.allocate(Memory.DEVICE, WIDTH), device.allocate(Memory.DEVICE, WIDTH)
    device.copy("forward", rows, pages)
    if waits:
        device.synchronize("forward")
    if event:
        written = device.event()
        device.record(written, "forward")
        device.wait_event("nic", written)  # which orders a stream of that name, and no card
    sent = device.post([pages], [remote])
    if takes:
        device.take(sent)
    device.copy("forward", device.host_view(torch.zeros(WIDTH, dtype=torch.uint8), Memory.PINNED), pages)
    device.synchronize("forward")
    seen: list[int] = remote.tolist()
    device.take(sent)
    return seen


def found(schedule: Schedule, **how: bool) -> StagingError | None:
    try:
        with CheckedDevice(schedule) as device:
            assert send(device, **how) == [1, 2, 3, 4]
    except StagingError as error:
        return error
    return None


def test_a_transfer_that_the_host_orders_is_right_in_every_order() -> None:
    assert {error for _, error in exhaustive(lambda schedule: found(schedule))} == {None}
    assert {error for _, error in delays(lambda schedule: found(schedule))} == {None}


@pytest.mark.parametrize("event", [False, True])
def test_the_host_must_wait_before_it_posts(event: bool) -> None:
    error = found(IssueOrder(), waits=False, event=event)
    assert type(error) is RaceError
    text = str(error)
    assert text.startswith("post 0 may read what copy 0 on stream forward may still write: nothing orders them")
    assert 'device.synchronize("forward")' in text
    assert "wait_event(" not in text.replace('device.wait_event("nic", written)', ""), "a card waits for no event"


def test_pages_are_the_cards_until_the_transfer_is_taken() -> None:
    error = found(IssueOrder(), takes=False)
    assert type(error) in (RaceError, HostAccessError)
    assert "may write what post 0 may still read" in str(error)
    assert "device.take(" in str(error)


def test_what_a_card_brings_is_there_when_it_is_taken() -> None:
    def fetch(schedule: Schedule, takes: bool) -> list[int]:
        device = CheckedDevice(schedule)
        pages, target = device.host_view(torch.tensor([5, 6], dtype=torch.uint8)), device.allocate(Memory.PINNED, 2)
        came = device.post([pages], [target])
        if takes:
            device.take(came)
        seen: list[int] = target.tolist()
        device.finish()
        return seen

    assert [seen for _, seen in delays(lambda schedule: fetch(schedule, True))] == [[5, 6]] * 4
    assert [5, 6] not in [seen for schedule, seen in delays(lambda schedule: fetch(schedule, False)) if str(schedule) == "late"]


def test_a_post_is_in_the_trace() -> None:
    device = CheckedDevice(IssueOrder())
    send(device)
    kinds = [type(issued.operation).__name__ for issued in device.trace().program]
    assert (kinds.count("Post"), kinds.count("Take")) == (1, 2)
    assert len(device.trace().events) == 2 * len(kinds)


def test_what_a_post_refuses() -> None:
    device = CheckedDevice(IssueOrder())
    with pytest.raises(LayoutError, match="2 bytes to 3"):
        device.post([device.allocate(Memory.PINNED, 2)], [device.allocate(Memory.PINNED, 3)])
    with pytest.raises(DeviceError, match="give what post returned"):
        device.take("nic")
    device.close()
