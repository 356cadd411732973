"""What is left in or goes wrong when a loop is ported: torch's own copies, a polled event, names of streams, late copies, gaps."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch

from kvstage import CheckedDevice, PagedPool, SpinningError, Stager, StagingError
from kvstage.checked.findings import NonBlockingError
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import IssueOrder, Schedule


def outcome(schedule: Schedule, loop: Callable[[CheckedDevice], object]) -> StagingError | None:
    try:
        with CheckedDevice(schedule) as device:
            loop(device)
    except StagingError as error:
        return error
    return None


ASYNCHRONOUS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "copy_ to the host": lambda on_device, pinned: pinned.copy_(on_device, non_blocking=True),
    "copy_ to the device": lambda on_device, pinned: on_device.copy_(pinned, True),
    "to": lambda on_device, pinned: on_device.to("cpu", non_blocking=True),
    "to, by position": lambda on_device, pinned: on_device.to("cpu", torch.float32, True),
    "to another": lambda on_device, pinned: pinned.to(on_device, non_blocking=True),
    "of a list": lambda on_device, pinned: torch._foreach_copy_([pinned], [on_device], True),
}


@pytest.mark.parametrize("how", ASYNCHRONOUS)
def test_a_copy_of_torchs_that_would_be_asynchronous_is_refused_by_name(how: str) -> None:
    device = CheckedDevice(IssueOrder())
    on_device, pinned = device.allocate(Memory.DEVICE, 4), device.allocate(Memory.PINNED, 4)
    with pytest.raises(NonBlockingError, match=r"(?s)non_blocking=True is asynchronous.*device\.copy\(stream, source, target\)"):
        ASYNCHRONOUS[how](on_device, pinned)


def test_it_is_told_at_the_end_where_the_code_goes_on() -> None:
    device = CheckedDevice(IssueOrder())
    with suppress(AssertionError):
        device.allocate(Memory.DEVICE, 4).to("cpu", non_blocking=True)
    assert type(device.finish()) is NonBlockingError


def test_copies_that_are_over_when_they_return_are_the_hosts() -> None:
    device = CheckedDevice(IssueOrder())
    on_device = device.allocate(Memory.DEVICE, 4)
    pinned, other = (device.allocate(Memory.PINNED, 4) for _ in range(2))
    pinned.copy_(on_device)
    pinned.copy_(on_device, non_blocking=False)
    other.copy_(pinned, non_blocking=True)  # inside host memory torch copies at once
    assert on_device.to("cpu", torch.uint8, False).tolist() == other.tolist()
    assert device.finish() is None


@pytest.mark.parametrize("recorded", [True, False])
def test_an_event_that_is_asked_for_ever_is_an_error(recorded: bool) -> None:
    device = CheckedDevice(IssueOrder())
    event = device.event()
    device.copy("s", device.allocate(Memory.DEVICE, 4), device.allocate(Memory.DEVICE, 4))
    if recorded:
        device.record(event, "s")

    def poll() -> None:
        for _ in range(5000):
            device.query(event)

    with pytest.raises(SpinningError, match="asks the same event over and over"):
        poll()
    device.finish()


def test_asking_again_after_something_has_happened_is_fine() -> None:
    device = CheckedDevice(IssueOrder())
    event, byte = device.event(), device.allocate(Memory.PINNED, 1)
    for _ in range(3000):
        assert device.query(event)
        byte.fill_(0)
    assert device.finish() is None


@pytest.mark.parametrize(("scheme", "stream"), [("gather", "model"), ("gather", "compute"), ("direct", "copy"), ("ring", "copy")])
@pytest.mark.parametrize("after", [True, False])
def test_a_callers_stream_is_never_the_librarys(scheme: str, stream: str, after: bool) -> None:
    def loop(device: CheckedDevice) -> None:
        fresh = torch.arange(1, 33, dtype=torch.uint8).view(4, 2, 4)
        tensor = device.allocate(Memory.DEVICE, fresh.numel()).view(fresh.shape)
        stager = Stager(device, scheme=scheme)
        device.copy(stream, device.host_view(fresh, Memory.DEVICE), tensor)
        read = stager.read(PagedPool(tensor), [3, 0, 2], 0, 6, after=stream if after else None)
        read.wait()
        assert read.result().tolist() == fresh[[3, 0, 2]].view(-1, 4).tolist() or not after
        stager.close()
        device.synchronize(stream)

    assert (outcome(IssueOrder(), loop) is None) is after


def uploads(device: CheckedDevice, waits: bool) -> None:
    """Takes the slot whose copy has ended; slot 0, with or without a wait, where there is none."""
    slots = device.allocate(Memory.PINNED, 8).view(2, 4)
    sent, target = [device.event(), device.event()], device.allocate(Memory.DEVICE, 20).view(5, 4)
    for number in range(5):
        slot = next((slot for slot in range(2) if device.query(sent[slot])), None)
        if slot is None and waits:
            device.wait(sent[0])
        slots[slot or 0] = number
        device.copy(f"h2d {slot or 0}", slots[slot or 0], target[number])
        device.record(sent[slot or 0], f"h2d {slot or 0}")
    for each in range(2):
        device.synchronize(f"h2d {each}")
    assert target[:, 0].tolist() == list(range(5))


def wrong(schedule: Schedule) -> StagingError | None:
    try:
        return outcome(schedule, lambda device: uploads(device, waits=False))
    except AssertionError as error:  # the loop's own: what was found is a note of it
        return StagingError("\n".join(error.__notes__), "")


def test_a_loop_that_goes_wrong_where_two_copies_are_late_is_found_by_default() -> None:
    assert {error for _, error in delays(lambda schedule: outcome(schedule, lambda device: uploads(device, True)))} == {None}
    results = {str(schedule): error for schedule, error in delays(wrong)}
    assert results["issue order"] is None
    assert results["late"] is not None
    assert results["hold copies 0 and 1 before their ends"] is not None
    assert not any(error for name, error in results.items() if name.startswith("hold copy "))


def test_a_loop_that_asks_names_the_schedule_that_it_ran_under() -> None:
    schedule, error = next((schedule, error) for schedule, error in exhaustive(wrong) if error is not None)
    told = next(line for line in str(error).splitlines() if "under schedule" in line)
    assert told.startswith("  found under schedule choices:")
    assert wrong(from_string(told.split()[3])) is not None
    assert str(schedule) in told


@pytest.mark.parametrize("waits", [True, False])
def test_rows_with_gaps_are_copied_as_they_lie(waits: bool) -> None:
    cache = torch.arange(32, dtype=torch.uint8).view(2, 2, 2, 4)

    def loop(device: CheckedDevice) -> None:
        source, out = device.host_view(cache.clone(), Memory.DEVICE), device.allocate(Memory.PINNED, 16).view(2, 2, 4)
        device.copy("d2h", source[:, 1], out)
        source[:, 0].fill_(9)  # the other head is no part of it
        if waits:
            device.synchronize("d2h")
        seen = out.tolist()
        device.synchronize("d2h")
        assert seen == cache[:, 1].tolist() or not waits
        device.copy("h2d", out, source[:, 0])
        device.synchronize("h2d")
        assert source[:, 0].tolist() == cache[:, 1].tolist()

    outcomes = [error for _, error in delays(lambda schedule: outcome(schedule, loop))]
    assert all((error is None) is waits for error in outcomes)
