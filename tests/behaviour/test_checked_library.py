"""The library on the checked device: right as it is, and its callers' mistakes found, which it does not look for itself."""

from collections.abc import Callable

import pytest
import torch

from kvstage import CheckedDevice, DeviceError, HostAccessError, PagedPool, RaceError, Stager, StagingError
from kvstage.checked.host_view import HostView
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import IssueOrder, Schedule
from kvstage_model.schedules.seeded import seeded
from kvstage_model.schemes.registry import LIBRARY

ROWS = torch.arange(9, dtype=torch.uint8).view(3, 3)


def found(loop: Callable[[CheckedDevice], object], schedule: Schedule | None = None) -> StagingError | None:
    """What a loop gets told at its end."""
    with CheckedDevice(schedule or IssueOrder()) as device:
        loop(device)
        return device.finish()


@pytest.mark.parametrize("scheme", LIBRARY)
def test_the_library_runs_on_it_and_nothing_is_found(scheme: str) -> None:
    def loop(device: CheckedDevice) -> None:
        pool = PagedPool(device.host_view(torch.zeros(4, 2, 3, dtype=torch.uint8), Memory.DEVICE))
        stager, rows = Stager(device, scheme=scheme), torch.arange(9, dtype=torch.uint8).view(3, 3)
        stager.write(pool, [3, 0], 1, device.host_view(rows)).wait()
        read = stager.read(pool, [3, 0], 1, 4, out=device.host_view(torch.zeros(3, 3, dtype=torch.uint8)))
        read.wait()
        assert isinstance(read.result(), HostView)
        assert torch.equal(read.result(), rows)

    results = list(seeded(lambda schedule: found(loop, schedule), 1, 10))
    assert [error for _, error in results] == [None] * 10


def pools(device: CheckedDevice) -> tuple[torch.Tensor, PagedPool]:
    blocks = device.host_view(torch.zeros(4, 2, 3, dtype=torch.uint8), Memory.DEVICE)
    return blocks, PagedPool(blocks)


def test_a_caller_who_overwrites_rows_under_way_is_found() -> None:
    def loop(device: CheckedDevice) -> None:
        blocks, pool = pools(device)
        read = Stager(device, scheme="direct").read(pool, [3, 0], 0, 3)
        blocks[3, 1] = 1  # row 1 of the sequence
        read.wait()

    error = found(loop)
    assert type(error) is HostAccessError
    assert "second:  " in str(error)
    assert str(error).splitlines()[2].endswith(": blocks[3, 1] = 1  # row 1 of the sequence")


def test_a_caller_who_overwrites_other_rows_is_not() -> None:
    def loop(device: CheckedDevice) -> None:
        blocks, pool = pools(device)
        read = Stager(device, scheme="direct").read(pool, [3, 0], 0, 3)
        blocks[0, 1] = 1  # row 3 of the sequence
        read.wait()

    assert [error for _, error in delays(lambda schedule: found(loop, schedule))] == [None] * 6, "two copies, and late"


@pytest.mark.parametrize("after", ["mine", None])
def test_a_caller_whose_kernel_a_call_does_not_wait_for_is_found(after: str | None) -> None:
    """The pool's rows are written by a copy on a stream of the caller's."""

    def loop(device: CheckedDevice) -> None:
        blocks, pool = pools(device)
        device.copy("mine", device.host_view(ROWS[:2].clone()), blocks[3])
        Stager(device, scheme="direct").read(pool, [3, 0], 0, 3, after=after).wait()
        device.synchronize("mine")

    error = found(loop)
    assert (type(error) is RaceError) == (after is None)
    assert error is None or "may read what copy 0 on stream mine may still write: nothing orders them" in str(error)


@pytest.mark.parametrize("scheme", LIBRARY)
@pytest.mark.parametrize("given", ["pool", "out", "rows", "target"])
def test_tensors_whose_uses_would_go_unseen_are_refused(scheme: str, given: str) -> None:
    """One plain tensor among the device's own: nothing is issued, nothing is written."""
    with CheckedDevice(IssueOrder()) as device:
        tensors = {"pool": torch.zeros(4, 2, 3), "target": torch.zeros(4, 2, 3), "out": torch.zeros(3, 3), "rows": torch.ones(3, 3)}
        before = {name: tensor.clone() for name, tensor in tensors.items()}
        seen = {name: tensor if name == given else device.host_view(tensor) for name, tensor in tensors.items()}
        stager, pool = Stager(device, scheme=scheme), PagedPool(seen["pool"])
        calls: dict[str, Callable[[], object]] = {
            "out": lambda: stager.read(pool, [3, 0], 1, 4, out=seen["out"]),
            "rows": lambda: stager.write(pool, [3, 0], 1, seen["rows"]),
            "target": lambda: stager.copy(pool, [3, 0], PagedPool(seen["target"]), [1, 2]),
        }
        calls["pool"] = calls["out"]
        with pytest.raises(DeviceError, match="would go unseen"):
            calls[given]()
        assert device.issued == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors.items())


@pytest.mark.parametrize("scheme", LIBRARY)
@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_results_that_the_library_allocates_are_the_devices_own(scheme: str, dtype: torch.dtype | None) -> None:
    with CheckedDevice(IssueOrder()) as device:
        pool = PagedPool(device.host_view(torch.arange(24.0).to(torch.bfloat16).view(4, 2, 3)))
        read = Stager(device, scheme=scheme).read(pool, [3, 0], 1, 4, dtype=dtype)
        read.wait()
        assert isinstance(read.result(), HostView)
        assert read.result().tolist() == [[21.0, 22.0, 23.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(("scheme", "under_way"), [("direct", True), ("gather_host", True), ("per_block", False)])
def test_a_result_that_is_read_before_it_is_there_is_found(scheme: str, under_way: bool) -> None:
    """Where the call is over when it returns, nothing is missing."""

    def loop(device: CheckedDevice) -> None:
        _, pool = pools(device)
        out = device.host_view(torch.zeros(3, 3, dtype=torch.uint8))
        read = Stager(device, scheme=scheme).read(pool, [3, 0], 0, 3, out=out)
        out.tolist()
        read.wait()

    assert (type(found(loop)) is HostAccessError) == under_way
