"""A user's own loops under a recorder: any operand that the device takes, and one buffer for one memory."""

import runpy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from kvstage import CheckedDevice, HostDevice, SimDevice, ThreadDevice
from kvstage.recorder.device import RecordingDevice
from kvstage.recorder.operands import Operand
from kvstage_model.language.buffers import Memory, Rows, parts
from kvstage_model.language.operations import (
    Copy,
    Gather,
    HostRead,
    HostWrite,
    Launch,
    RecordEvent,
    SyncStream,
    WaitEvent,
    reads,
    writes,
)
from kvstage_model.language.scheme import CALLER
from kvstage_model.ordering.races import races
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.traces.json_reader import read
from kvstage_model.traces.json_writer import as_json
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"

DEVICES: dict[str, Callable[[], Any]] = {
    "threads": ThreadDevice,
    "host": HostDevice,
    "simulated": lambda: SimDevice(IssueOrder()),
    "checked": lambda: CheckedDevice(IssueOrder()),
}


def recording(kind: str) -> Any:
    return RecordingDevice(DEVICES[kind]())


def touched(access: Any) -> list[tuple[str, int, int]]:
    return [(rows.buffer.name, rows.start, rows.count) for rows in parts(access)]


@pytest.fixture
def examples(pytestconfig: pytest.Config) -> tuple[Any, Any]:
    """The row loop and the ring of the examples, which have a mark of the plugin."""
    pytestconfig.addinivalue_line("markers", "staging: of the examples")
    row_loop, ring = (runpy.run_path(str(EXAMPLES / f"test_{name}.py")) for name in ("row_loop", "ring_across_calls"))
    return SimpleNamespace(**row_loop), SimpleNamespace(**ring)


@pytest.mark.parametrize("kind", ["threads", "host", "checked"])
def test_the_loops_of_the_examples_are_recorded(kind: str, examples: tuple[Any, Any]) -> None:
    row_loop, ring = examples
    with recording(kind) as device:
        pool = torch.arange(24, dtype=torch.bfloat16).view(4, 2, 3)
        rows = device.host_view(pool, Memory.DEVICE) if kind == "checked" else pool
        found = row_loop.read_rows(device, rows, 1, 5)
        assert found.tolist() == [pool[row_loop.BLOCK_TABLE[row // 2], row % 2].tolist() for row in range(1, 5)]
        assert ring.uploaded(ring.Uploader(device), ring.CALLS) == ring.CALLS
    program = [issued.operation for issued in device.trace().program]
    copies = [operation for operation in program if isinstance(operation, Copy)]
    assert len(copies) == 4 + 5
    assert [(copy.source.start, copy.source.count, copy.target.count) for copy in copies[:4]] == [
        (2 * row_loop.BLOCK_TABLE[row // 2] + row % 2, 1, 1) for row in range(1, 5)
    ]
    assert [copy.source.start for copy in copies[4:]] == [0, 1, 0, 0, 1]
    assert [copy.source.buffer.memory for copy in copies[4:]] == [Memory.PINNED] * 5
    again = read(as_json(device.trace()).encode()).trace
    assert len(again.program) == len(program) == 4 * 2 + 5 * 3 + 1


def as_tensors(memory: torch.Tensor) -> Any:
    return memory


def as_arrays(memory: torch.Tensor) -> Any:
    return memory.numpy()


@pytest.mark.parametrize("handle", [as_tensors, as_arrays])
@pytest.mark.parametrize(("first", "second", "race"), [((0, 4), (3, 8), True), ((0, 4), (4, 8), False), ((4, 8), (2, 5), True)])
def test_two_operands_race_where_their_bytes_do(handle: Any, first: Any, second: Any, race: bool) -> None:
    memory, other = handle(torch.zeros(8, dtype=torch.uint8)), handle(torch.zeros(16, dtype=torch.uint8))
    with recording("simulated") as device:
        device.copy("one", memory[slice(*first)], other[: first[1] - first[0]])
        device.copy("two", other[8 : 8 + second[1] - second[0]], memory[slice(*second)])
    assert bool(list(races(device.program))) == race


@pytest.mark.parametrize(("slot", "row", "race"), [(0, 0, True), (0, 1, True), (1, 0, False)])
def test_memory_in_two_shapes_is_one_buffer(slot: int, row: int, race: bool) -> None:
    """Slots of four rows of two bytes in one view, and of two rows of four bytes in the other one."""
    memory, pool, out = (torch.zeros(size, dtype=torch.uint8) for size in (16, 8, 4))
    with recording("simulated") as device:
        narrow, wide = device.view(Memory.PINNED, memory.view(2, 4, 2)), device.view(Memory.PINNED, memory.view(2, 2, 4))
        device.copy("one", device.view(Memory.DEVICE, pool.view(1, 4, 2))[0, 0:4], narrow[0, 0:4])
        device.copy("two", wide[slot, row : row + 1], device.view(Memory.DEVICE, out.view(1, 1, 4))[0, 0:1])
    _, filled, used, _ = (name for issued in device.program for name in _names(issued.operation))
    assert filled == used
    assert bool(list(races(device.program))) == race
    assert not list(races([noted.issued for noted in device.noted])), "twin: by its views alone the memory is two"


def _names(operation: Any) -> list[str]:
    return [rows.buffer.name for access in (*reads(operation), *writes(operation)) for rows in parts(access)]


def test_a_view_that_shares_nothing_keeps_its_shape_and_both_keep_their_names() -> None:
    shared, alone = torch.zeros(2, 2, 6, dtype=torch.uint8), torch.zeros(3, 2, 6, dtype=torch.uint8)
    with recording("simulated") as device:
        device.name(shared, "cache")
        device.name(alone, "other")
        view, other = device.view(Memory.DEVICE, shared), device.view(Memory.PINNED, alone)
        device.copy("s", other[2, 0:1], other[1, 0:1])
        device.gather("s", other, np.array([5, 0]), other[1, 0:2])
        device.copy("s", shared.view(-1)[4:8], shared.view(-1)[16:20])
        device.copy("s", view[1, 0:1], view[0, 1:2])
        device.note(HostRead(device.buffer(Memory.DEVICE, shared).at(1, 1, 1)))
    first, gather, bytewise, rows, seen = (issued.operation for issued in device.program)
    assert isinstance(first, Copy)
    assert (first.source.buffer.name, first.source.buffer.slots, first.source.buffer.rows) == ("other", 3, 2)
    assert isinstance(gather, Gather)
    assert touched(bytewise.source) + touched(bytewise.target) == [("cache", 2, 2), ("cache", 8, 2)]  # in pieces of two bytes
    assert touched(rows.source) + touched(rows.target) == [("cache", 6, 3), ("cache", 3, 3)]
    assert touched(seen.source) == [("cache", 9, 3)]


def test_any_place_of_a_view_may_be_an_operand() -> None:
    """Rows of four bytes, two in a slot: by numbers of numpy, from the end, and one row, or a whole slot, as the device has it."""
    memory, out = torch.zeros(3, 2, 4, dtype=torch.uint8), np.zeros((2, 4), np.uint8)
    places = [(np.int64(2), slice(np.int64(0), 1)), (-1, slice(0, 1)), (2, 0), 1]
    with recording("host") as device:
        view = device.view(Memory.PINNED, memory)
        for place in places:
            device.copy("s", view[place], out[: 2 if place == 1 else 1])
    first, *others = [touched(issued.operation.source) for issued in device.program]
    assert (first, others) == ([("pinned 0", 4, 1)], [[("pinned 0", 4, 1)], [("pinned 0", 4, 1)], [("pinned 0", 2, 2)]])
    assert isinstance(view[places[0]], Operand)


def test_kernels_on_tensors_reach_the_bytes_of_their_rows() -> None:
    """Nine rows of two bytes in slots that lie ten bytes apart: row 4 begins at byte 12, row 8 at byte 24."""
    pool, packed = torch.zeros(3, 10, dtype=torch.uint8)[:, :6].view(3, 3, 2), torch.zeros(2, 2, dtype=torch.uint8)
    with recording("checked") as device:
        tensors = [device.host_view(tensor, Memory.DEVICE) for tensor in (pool, packed)]
        device.gather("s", tensors[0], np.array([8, 4]), tensors[1])
        device.scatter("s", tensors[1], tensors[0], np.array([0, 4]))
    gather, scatter = (issued.operation for issued in device.program)
    assert isinstance(gather, Launch)
    unit = 2
    assert sorted((rows.start * unit, rows.count * unit) for access in reads(gather) for rows in parts(access)) == [
        (12, 2),
        (24, 2),
    ]
    assert sorted((rows.start * unit, rows.count * unit) for rows in writes(scatter) if isinstance(rows, Rows)) == [(0, 2), (12, 2)]


def test_a_copy_with_gaps_touches_all_of_its_pieces() -> None:
    memory = np.zeros((3, 4), np.uint8)
    with recording("host") as device:
        device.copy("s", memory[:, :2], np.zeros((3, 2), np.uint8))
        device.host_copy(memory[:, :2], memory[:, 2:])
    launch, *host = (issued.operation for issued in device.program)
    assert [(access.start, access.count) for access in reads(launch)] == [(0, 1), (2, 1), (4, 1)]
    assert [type(operation) for operation in host] == [HostRead] * 3 + [HostWrite] * 3


def test_the_order_with_a_callers_streams_is_noted_as_his() -> None:
    memory = torch.zeros(8, dtype=torch.uint8)
    with RecordingDevice(ThreadDevice(), timed=True) as device, device.call():
        device.copy("caller", memory[:4].numpy(), memory[4:].numpy())
        device.order_after("copy", "caller")
        device.copy("copy", memory[4:].numpy(), memory[:4].numpy())
        event = device.event()
        device.record(event, "copy")
        device.order_before(event, "caller")
        device.order_after("copy", None)
        device.synchronize("caller")
    kinds = [type(issued.operation) for issued in device.program]
    assert kinds == [Copy, RecordEvent, WaitEvent, Copy, RecordEvent, WaitEvent, SyncStream]
    assert [issued.phase == CALLER for issued in device.program] == [kind is WaitEvent or at == 1 for at, kind in enumerate(kinds)]
    assert list(races(device.program)) == []
    assert len(device.trace().events) == 2 * len(kinds), "what the device measured fits what was noted"
