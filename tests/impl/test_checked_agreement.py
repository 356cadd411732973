"""Random loops: where the checked device finds nothing, all schedules give the same bytes; where it does, some give others."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import torch

from kvstage import CheckedDevice, StagingError
from kvstage.accesses import Accesses
from kvstage_model.buffers import Memory
from kvstage_model.replays import from_string
from kvstage_model.schedules import IssueOrder, Schedule, delays
from kvstage_model.seeded import seeded

STREAMS = ("a", "b")
KINDS = ("copy", "copy", "write", "read", "sync", "record", "wait", "stream wait")
SLOTS = 4
PROGRAMS = 60
DRAWN = 15
"""How many random schedules each loop runs under, beside its delays."""

Step = Callable[[CheckedDevice, torch.Tensor, list[object], list[int]], object]


def steps(draw: random.Random) -> Iterator[Step]:
    """A loop of up to seven steps on four slots of four bytes, two streams and two events, with a copy first."""
    for kind in (
        "copy",
        *draw.choices(("copy", "copy", "write", "read", "sync", "record", "wait", "stream wait"), k=draw.randint(2, 6)),
    ):
        stream, event, value = draw.choice(STREAMS), draw.randrange(2), draw.randrange(100, 200)
        one, two = draw.sample(range(SLOTS), 2)
        yield {
            "copy": lambda device, rows, events, seen, s=stream, i=one, j=two: device.copy(s, rows[i], rows[j]),
            "write": lambda device, rows, events, seen, i=one, v=value: rows[i].copy_(torch.arange(v, v + 4)),
            "read": lambda device, rows, events, seen, i=one: seen.extend(rows[i].tolist()),
            "sync": lambda device, rows, events, seen, s=stream: device.synchronize(s),
            "record": lambda device, rows, events, seen, s=stream, e=event: device.record(events[e], s),
            "wait": lambda device, rows, events, seen, e=event: device.wait(events[e]),
            "stream wait": lambda device, rows, events, seen, s=stream, e=event: device.wait_event(s, events[e]),
        }[kind]


def run(loop: list[Step], schedule: Schedule) -> tuple[tuple[int, ...], StagingError | None]:
    """All bytes that the host has read, then all there are in the end; and what the device found."""
    device, seen = CheckedDevice(schedule), list[int]()
    rows = device.allocate(Memory.PINNED, 4 * SLOTS).view(SLOTS, 4)
    rows.copy_(torch.arange(4 * SLOTS).view(SLOTS, 4))
    events = [device.event() for _ in range(2)]
    for step in loop:
        step(device, rows, events, seen)
    for stream in STREAMS:
        device.synchronize(stream)
    seen += rows.flatten().tolist()
    return tuple(seen), device.finish()


def agreement(number: int, programs: int) -> Counter[str]:
    """Counts the loops of each kind; a loop without a finding whose bytes differ fails the test."""
    draw, kinds = random.Random(number), Counter[str]()
    for _ in range(programs):
        loop = list(steps(draw))
        results = [result for _, result in delays(lambda schedule, loop=loop: run(loop, schedule))]
        results += [result for _, result in seeded(lambda schedule, loop=loop: run(loop, schedule), draw.randrange(1000), DRAWN)]
        in_order, found = run(loop, IssueOrder())
        differ = len({seen for seen, _ in results}) > 1
        kinds[f"{'found' if found else 'nothing found'}, bytes {'differ' if differ else 'agree'}"] += 1
        assert all((error is None) == (found is None) for _, error in results), "what is found depends on what was issued alone"
        if found is not None:
            shown, again = run(loop, from_string(found.schedule))
            kinds["shown by its schedule"] += shown != in_order
            assert str(again) == str(found)
    return kinds


def check(kinds: Counter[str]) -> None:
    found = kinds["found, bytes differ"] + kinds["found, bytes agree"]
    assert kinds["nothing found, bytes differ"] == 0
    assert kinds["nothing found, bytes agree"] > sum(kinds.values()) // 10
    assert kinds["found, bytes differ"] > 0.7 * found, "the others write the same bytes twice, or bytes that nobody reads"
    assert kinds["shown by its schedule"] > 0.5 * found, "the schedule of the first finding alone"


def test_findings_and_bytes_agree() -> None:
    check(agreement(0, PROGRAMS))


@pytest.mark.extended
@pytest.mark.parametrize("part", range(1, 9))
def test_findings_and_bytes_agree_in_many_loops(part: int) -> None:
    check(agreement(part, 4 * PROGRAMS))


def test_a_device_that_does_not_note_the_host_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Accesses, "host", lambda *_: None)
    kinds = agreement(0, PROGRAMS)
    assert kinds["nothing found, bytes differ"] > 0
    with pytest.raises(AssertionError):
        check(kinds)
