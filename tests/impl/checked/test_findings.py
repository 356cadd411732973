"""The words of a finding: both accesses, both lines, the bytes, the waits that would help, and the schedule."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from kvstage import CheckedDevice, StagingError
from kvstage.checked.findings import replay_of
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.schedule import IssueOrder, Move

HERE = Path(__file__).relative_to(Path.cwd()) if Path(__file__).is_relative_to(Path.cwd()) else Path(__file__)


def line_of(text: str) -> int:
    """The number of the only line of this file that ends so."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"  # {text}"))
    return number


def found(loop: Callable[[CheckedDevice], None]) -> list[str]:
    """The lines of what a loop gets told in issue order."""

    def run() -> None:
        with CheckedDevice(IssueOrder()) as device:
            loop(device)

    with pytest.raises(StagingError) as caught:
        run()
    return str(caught.value).splitlines()


def test_a_finding_says_all_that_is_needed() -> None:
    def loop(device: CheckedDevice) -> None:
        pages = device.allocate(Memory.PINNED, 16)  # allocated
        table, event = device.allocate(Memory.DEVICE, 16), device.event()
        for step in range(2):
            pages[4:8] = step  # written
            device.copy("h2d", pages, table)  # copied
            device.record(event, "h2d")  # recorded
        device.wait(event)  # waited

    wait = f'device.wait(event)  (of {HERE}:{line_of("recorded")}: device.record(event, "h2d")  # recorded)'
    assert found(loop) == [
        "the host writes what copy 0 on stream h2d may still read: a wait is missing",
        f'  first:   {HERE}:{line_of("copied")}: device.copy("h2d", pages, table)  # copied',
        f"  second:  {HERE}:{line_of('written')}: pages[4:8] = step  # written",
        f"  common:  bytes 4 to 7 of 16 (pinned), from {HERE}:{line_of('allocated')}: "
        "pages = device.allocate(Memory.PINNED, 16)  # allocated",
        f"  the wait comes too late: {HERE}:{line_of('waited')}: device.wait(event)  # waited",
        "  any of these, right before the second, keeps them apart:",
        f"    {wait}",
        '    device.synchronize("h2d")',
        '    device.record(event, "h2d") right behind the first, then device.wait(event)',
        "  they overlap under schedule hold:0:end (hold copy 0 before its end)",
    ]


def test_between_streams_a_stream_may_wait_too() -> None:
    def loop(device: CheckedDevice) -> None:
        a, b, c = (device.host_view(torch.zeros(4)) for _ in range(3))
        device.copy("one", a, b)
        device.copy("two", b, c)

    assert [line.strip() for line in found(loop)[5:8]] == [
        'device.synchronize("one")',
        'device.record(event, "one") right behind the first, then device.wait_event("two", event)',
        'device.record(event, "one") right behind the first, then device.wait(event)',
    ]


def test_other_pairs_are_counted() -> None:
    def refill(device: CheckedDevice, turns: int) -> None:
        pages, tables = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4 * turns).view(turns, 4)
        for turn in range(turns):
            pages[:] = turn
            device.copy("h2d", pages, tables[turn])
        device.synchronize("h2d")

    assert "more" not in found(partial(refill, turns=2))[-1]
    assert found(partial(refill, turns=3))[-1] == "  (2 more pairs of accesses in this run may overlap)"


class Own:
    """A schedule of a user's own."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        return moves[-1]

    def __str__(self) -> str:
        return "the last one first"


def test_a_schedule_without_a_string_is_named() -> None:
    assert replay_of(Own()) == "the last one first"
    assert replay_of(IssueOrder()) == "issue-order"
