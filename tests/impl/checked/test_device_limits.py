"""The checked device at its limits: work without a byte, its time after the run, a second thread, indices of other types."""

from collections.abc import Callable
from threading import Thread

import numpy as np
import pytest
import torch

from kvstage import CheckedDevice, ClosedError, HostThreadError, KVStageError, LayoutError
from kvstage.devices.simulated import SimDevice
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.schedule import Hold, IssueOrder, Schedule


def test_work_without_a_byte_is_issued_and_moves_nothing() -> None:
    def loop(schedule: Schedule) -> tuple[int, list[int]]:
        with CheckedDevice(schedule) as device:
            pinned, pool = device.allocate(Memory.PINNED, 4), device.host_view(torch.arange(8, dtype=torch.uint8).view(1, 2, 4))
            pinned[:] = 9
            device.copy("s", pool[0, 0, :0], pinned[4:])
            device.copy("s", pool[:0].view(torch.float32), pinned[:0].view(torch.float32))
            device.gather("s", pool, [], pinned.view(1, 4)[:0])
            device.scatter("s", pinned.view(1, 4)[:0], pool, [])
            device.host_copy(pinned[:0], pool[0, 0, :0])
            kept: list[int] = pinned.tolist()  # no wait is needed
            device.synchronize("s")
        return device.issued, kept

    results = [result for _, result in delays(loop)]
    assert results == [(4, [9] * 4)] * 10


def test_after_the_run_waits_have_nothing_to_do() -> None:
    device = CheckedDevice(Hold(0, 1))
    pinned, table, event = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4), device.event()
    pinned[:] = 3
    device.copy("s", pinned, table)
    device.record(event, "s")
    assert device.finish() is None
    happened = list(device.log)
    device.synchronize("s")
    device.wait(event)
    assert device.query(event)
    device.close()
    assert device.finish() is None
    assert table.tolist() == [3] * 4
    assert device.log == happened


AFTER: dict[str, Callable[[CheckedDevice, torch.Tensor], object]] = {
    "copy": lambda device, memory: device.copy("s", memory[:2], memory[2:]),
    "host copy": lambda device, memory: device.host_copy(memory[:2], memory[2:]),
    "gather": lambda device, memory: device.gather("s", memory.view(1, 2, 2), [0], memory.view(2, 2)[:1]),
    "record": lambda device, memory: device.record(object(), "s"),
    "stream wait": lambda device, memory: device.wait_event("s", object()),
    "event": lambda device, memory: device.event(),
    "allocate": lambda device, memory: device.allocate(Memory.PINNED, 1),
    "host view": lambda device, memory: device.host_view(torch.zeros(1)),
}


@pytest.mark.parametrize("name", AFTER)
def test_after_the_run_nothing_is_issued(name: str) -> None:
    device = CheckedDevice(IssueOrder())
    memory = device.allocate(Memory.PINNED, 4)
    device.close()
    with pytest.raises(ClosedError, match="this CheckedDevice is closed, its run is over"):
        AFTER[name](device, memory)


ELSEWHERE: dict[str, Callable[[CheckedDevice, torch.Tensor], object]] = {
    **AFTER,
    "synchronize": lambda device, memory: device.synchronize("s"),
    "wait": lambda device, memory: device.wait(object()),
    "query": lambda device, memory: device.query(object()),
    "a look": lambda device, memory: memory.tolist(),
    "a write": lambda device, memory: memory.fill_(1),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_second_host_thread_is_refused_and_the_run_fails_though_nobody_saw_that(name: str) -> None:
    device, raised = CheckedDevice(IssueOrder()), list[KVStageError]()
    memory = device.allocate(Memory.PINNED, 4)

    def use() -> None:
        try:
            ELSEWHERE[name](device, memory)
        except KVStageError as error:
            raised.append(error)

    thread = Thread(target=use)
    thread.start()
    thread.join()
    (error,) = raised
    assert type(error) is HostThreadError
    assert "a second host thread uses the device" in str(error)
    assert "test_device_limits.py" in str(error).splitlines()[1]
    assert device.issued == 0
    with pytest.raises(HostThreadError):
        device.close()


@pytest.mark.parametrize("index", [[1, 0], (1, 0), np.array([1, 0], np.int32), torch.tensor([1, 0]), torch.tensor([1, 0]).int()])
def test_an_index_of_any_kind_of_integers(index: object) -> None:
    with CheckedDevice(IssueOrder()) as device:
        pool, packed = device.host_view(torch.arange(4.0).view(1, 2, 2)), device.host_view(torch.zeros(2, 2))
        device.gather("k", pool, index, packed)  # type: ignore[arg-type]
        device.synchronize("k")
        assert packed.tolist() == [[2.0, 3.0], [0.0, 1.0]]
        device.scatter("k", packed, pool, index)  # type: ignore[arg-type]
        device.synchronize("k")
        assert pool.tolist() == [[[0.0, 1.0], [2.0, 3.0]]]


@pytest.mark.parametrize("index", [torch.tensor([1.5, 0.0]), np.array([True, False]), ["1", "0"]])
def test_an_index_of_anything_else_is_refused(index: object) -> None:
    with CheckedDevice(IssueOrder()) as device:
        pool, packed = device.host_view(torch.zeros(1, 2, 2)), device.host_view(torch.zeros(2, 2))
        with pytest.raises(LayoutError, match="give the numbers of rows as integers"):
            device.gather("k", pool, index, packed)  # type: ignore[arg-type]
        assert device.issued == 0


def test_it_states_the_costs_of_the_device_that_it_stands_on() -> None:
    """So a stager with scheme="auto" measures nothing under a schedule."""
    assert CheckedDevice(IssueOrder()).costs == SimDevice(IssueOrder()).costs
