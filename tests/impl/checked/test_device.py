"""The checked device: what it runs, what it refuses, and what it finds in small loops."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import torch

from kvstage import (
    AliasError,
    CheckedDevice,
    ClosedError,
    DeviceError,
    HostAccessError,
    LayoutError,
    RaceError,
    ReleasedMemoryError,
    SpinningError,
    StagingError,
)
from kvstage.checked.run import LOOKS
from kvstage.devices.simulated import UNWRITTEN
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays, exhaustive
from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import Hold, IssueOrder, Schedule

Loop = Callable[[CheckedDevice], object]


def found(loop: Loop, schedule: Schedule | None = None) -> StagingError | None:
    """What a loop gets told at its end."""
    try:
        with CheckedDevice(schedule or IssueOrder()) as device:
            loop(device)
    except StagingError as error:
        return error
    return None


def no_wait(device: CheckedDevice) -> None:
    pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    pinned[:] = 1
    device.copy("h2d", pinned, table)
    pinned[:] = 2
    device.synchronize("h2d")


def read_too_early(device: CheckedDevice) -> list[int]:
    pinned, pool = device.allocate(Memory.PINNED, 4), device.host_view(torch.arange(4, dtype=torch.uint8))
    device.copy("d2h", pool, pinned)
    rows: list[int] = pinned.tolist()
    device.synchronize("d2h")
    return rows


def two_streams(device: CheckedDevice) -> None:
    a, b, c = (device.allocate(Memory.DEVICE, 4) for _ in range(3))
    device.copy("one", a, b)
    device.copy("two", b, c)


def returns_early(device: CheckedDevice) -> None:
    table = device.allocate(Memory.DEVICE, 4)

    def upload() -> None:
        pinned = device.allocate(Memory.PINNED, 4)
        pinned[:] = 1
        device.copy("h2d", pinned, table)

    upload()
    device.synchronize("h2d")


BROKEN: dict[type[StagingError], tuple[Loop, str]] = {
    HostAccessError: (no_wait, "the host writes what copy 0 on stream h2d may still read: a wait is missing"),
    RaceError: (two_streams, "copy 1 on stream two may read what copy 0 on stream one may still write: nothing orders them"),
    ReleasedMemoryError: (returns_early, "copy 0 on stream h2d may still read memory that has been released"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("schedule", [IssueOrder(), Hold(0, 0), Hold(0, 1)])
def test_each_mistake_is_found_under_any_schedule(kind: type[StagingError], schedule: Schedule) -> None:
    loop, title = BROKEN[kind]
    error = found(loop, schedule)
    assert type(error) is kind
    assert str(error).startswith(title)


def test_a_host_access_without_a_wait_is_found_in_both_directions() -> None:
    assert "the host reads what copy 0 on stream d2h may still write" in str(found(read_too_early))


@pytest.mark.parametrize("wait", ["synchronize", "event", "query"])
def test_a_wait_in_between_is_all_it_takes(wait: str) -> None:
    def loop(device: CheckedDevice) -> None:
        event = device.event()
        pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
        for value in range(3):
            pinned[:] = value
            device.copy("h2d", pinned, table)
            device.record(event, "h2d")
            if wait == "synchronize":
                device.synchronize("h2d")
            elif wait == "event":
                device.wait(event)
            else:
                while not device.query(event):
                    pass
            assert table.tolist() == [value] * 4

    pairs = 3 if wait == "query" else 0
    assert [error for _, error in delays(lambda schedule: found(loop, schedule))] == [None] * (8 + pairs)


def test_an_event_orders_two_streams() -> None:
    def loop(device: CheckedDevice) -> None:
        a, b, c = (device.allocate(Memory.DEVICE, 4) for _ in range(3))
        a[:] = 5
        done = device.event()
        device.copy("one", a, b)
        device.record(done, "one")
        device.wait_event("two", done)
        device.copy("two", b, c)
        device.synchronize("two")
        assert c.tolist() == [5] * 4

    results = list(exhaustive(lambda schedule: found(loop, schedule)))
    assert len(results) > 5
    assert not any(error for _, error in results)


def test_memory_that_outlives_its_copies_is_fine() -> None:
    def loop(device: CheckedDevice) -> None:
        pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
        device.copy("h2d", pinned, table)
        device.synchronize("h2d")
        del pinned
        device.copy("d2h", table, device.allocate(Memory.PINNED, 8)[:4])

    assert "released" in str(found(loop)), "the last target is nobody's"
    assert found(lambda device: [loop_of_two(device), device.synchronize("h2d")]) is None


def loop_of_two(device: CheckedDevice) -> None:
    pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    device.copy("h2d", pinned, table)
    device.synchronize("h2d")


def test_a_loop_that_looks_for_bytes_without_a_wait_ends_with_an_error() -> None:
    looked = 0

    def loop(device: CheckedDevice) -> None:
        nonlocal looked
        pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
        pinned[:] = 1
        device.copy("h2d", pinned, table)
        while table[3] != 1:
            looked += 1

    error = found(loop, Hold(0, 0))
    assert type(error) is SpinningError
    assert "under way:" in str(error)
    assert 'device.copy("h2d", pinned, table)  (copy 0 on stream h2d' in str(error)
    assert error.schedule == "hold:0:begin"
    assert looked == LOOKS


def test_many_looks_that_are_not_a_loop_are_fine() -> None:
    def loop(device: CheckedDevice) -> None:
        pinned = device.allocate(Memory.PINNED, LOOKS + 10)
        device.copy("d2h", device.host_view(torch.ones(LOOKS + 10, dtype=torch.uint8)), pinned)
        device.synchronize("d2h")
        assert sum(int(pinned[at]) for at in range(len(pinned))) == LOOKS + 10

    assert found(loop) is None


@pytest.mark.parametrize("loop", [no_wait, two_streams, read_too_early])
def test_the_schedule_of_a_finding_makes_the_two_overlap(loop: Loop) -> None:
    """In issue order copy 0 has ended when the second access begins; under the schedule that is named it has not."""
    error = found(loop)
    assert error is not None
    assert error.schedule == "hold:0:end"
    for schedule, late in ((IssueOrder(), False), (from_string(error.schedule), True)):
        device = CheckedDevice(schedule)
        with suppress(StagingError), device:
            loop(device)
        log = [(str(label), moment.value) for label, moment in device.log]
        second = log.index((error.accesses[1], "begin"))
        assert (("copy 0", "end") in log[second:]) == late


def test_an_error_of_the_code_keeps_what_was_found_as_a_note() -> None:
    def divides(device: CheckedDevice) -> None:
        no_wait(device)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        found(divides)
    (note,) = caught.value.__notes__
    assert note == str(found(no_wait))


def test_kernels_move_rows_and_touch_those_alone() -> None:
    def loop(device: CheckedDevice) -> None:
        pool = device.host_view(torch.arange(24, dtype=torch.uint8).view(2, 3, 4))
        packed = device.allocate(Memory.PINNED, 8).view(2, 4)
        device.gather("k", pool, np.array([4, 0]), packed)
        pool[0, 1] = 77  # row 1 is nobody's
        device.synchronize("k")
        assert packed.tolist() == [[16, 17, 18, 19], [0, 1, 2, 3]]
        device.scatter("k", packed, pool, np.array([5, 2]))
        assert pool[1, 0].tolist() == [12, 13, 14, 15]
        device.synchronize("k")
        assert pool[1, 2].tolist() == [16, 17, 18, 19]
        assert pool[0, 2].tolist() == [0, 1, 2, 3]

    assert [error for _, error in delays(lambda schedule: found(loop, schedule))] == [None] * 6


@pytest.mark.parametrize("row", [4, 5])
def test_a_row_under_a_kernel_is_found(row: int) -> None:
    def loop(device: CheckedDevice) -> None:
        pool = device.host_view(torch.zeros(2, 3, 4, dtype=torch.uint8))
        device.scatter("k", device.host_view(torch.ones(2, 4, dtype=torch.uint8)), pool, np.array([4, 5]))
        pool.view(6, 4)[row].tolist()

    error = str(found(loop))
    assert error.startswith("the host reads what scatter 0 on stream k may still write")
    assert f"bytes {4 * row} to {4 * row + 3} of 24" in error


def test_copies_of_any_dtype_between_rows_of_tensors() -> None:
    with CheckedDevice(IssueOrder()) as device:
        source = device.host_view(torch.arange(6.0).view(2, 3))
        target = device.allocate(Memory.PINNED, 24).view(torch.float32).view(2, 3)
        assert target.view(torch.uint8)[0, 0] == UNWRITTEN
        device.copy("a", source[1], target[0])
        device.synchronize("a")
        device.host_copy(source[0], target[1])
        assert target.tolist() == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
        assert device.issued == 1


def test_what_a_device_refuses() -> None:
    device = CheckedDevice(IssueOrder())
    pool, rows = device.host_view(torch.zeros(2, 3, 4)), device.host_view(torch.zeros(2, 4))
    index = np.array([0, 0])
    for error, match, call in (
        (DeviceError, "go unseen", lambda: device.copy("a", torch.zeros(2, 4), rows)),
        (DeviceError, "go unseen", lambda: device.copy("a", CheckedDevice(IssueOrder()).allocate(Memory.PINNED, 32), rows)),
        (DeviceError, "meta", lambda: device.host_view(torch.zeros(1, device="meta"))),
        (LayoutError, "16 bytes to 32", lambda: device.copy("a", rows[0], rows)),
        (LayoutError, "have gaps: give both one shape", lambda: device.copy("a", pool[:, 0], rows.view(-1))),
        (LayoutError, "has gaps", lambda: device.host_copy(pool[:, 0], rows)),
        (AliasError, "overlap", lambda: device.copy("a", pool[:, 0:2], pool[:, 1:3])),
        (AliasError, "overlap", lambda: device.copy("a", pool[0, 0:2], pool[0, 1:3])),
        (AliasError, "overlap", lambda: device.host_copy(rows, rows)),
        (LayoutError, "reaches row 6", lambda: device.gather("a", pool, np.array([0, 6]), rows)),
        (LayoutError, "reaches row -1", lambda: device.gather("a", pool, np.array([0, -1]), rows)),
        (LayoutError, "with 1 rows", lambda: device.gather("a", pool, np.array([0]), rows)),
        (LayoutError, "twice", lambda: device.scatter("a", rows, pool, index)),
    ):
        with pytest.raises(error, match=match):
            call()
    assert device.issued == 0
    device.gather("a", pool, index, rows)  # reading a row twice is fine
    device.close()
    device.close()
    with pytest.raises(ClosedError):
        device.copy("a", rows[0], rows[1])
    assert rows.tolist() == [[0.0] * 4] * 2, "and views are plain tensors from now on"
