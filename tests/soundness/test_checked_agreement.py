"""Random loops: where the checked device finds nothing, all schedules give the same bytes; where it does, some give others."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
import torch

from kvstage import CheckedDevice, StagingError
from kvstage.checked.accesses import Accesses
from kvstage.checked.source_lines import Line
from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.schedules.seeded import seeded
from tests.support.tiers import often

STREAMS = ("a", "b")
COPY = "copy"
KINDS = ("copy", "copy, record", "copy, record", "record", "write", "read", "sync", "wait", "wait", "stream waits", "stream waits")
SLOTS = 3
PROGRAMS = 60
DRAWN = 8
"""How many random schedules each loop runs under, beside its delays."""

Step = Callable[[CheckedDevice, torch.Tensor, object, list[int]], object]


def steps(draw: random.Random) -> Iterator[Step]:
    """A loop of up to seven steps on three slots of four bytes, two streams and an event: a copy first, a use in the end."""
    for kind in (COPY, *draw.choices(KINDS, k=draw.randint(1, 5)), draw.choice(("write", "read", "copy"))):
        stream, value = draw.choice(STREAMS), draw.randrange(100, 200)
        one, two = draw.sample(range(SLOTS), 2)
        if COPY in kind:
            yield lambda device, rows, event, seen, s=stream, i=one, j=two: device.copy(s, rows[i], rows[j])
        if "record" in kind:
            yield lambda device, rows, event, seen, s=stream: device.record(event, s)
        yield {
            "write": lambda device, rows, event, seen, i=one, v=value: rows[i].copy_(torch.arange(v, v + 4)),
            "read": lambda device, rows, event, seen, i=one: seen.extend(rows[i].tolist()),
            "sync": lambda device, rows, event, seen, s=stream: device.synchronize(s),
            "wait": lambda device, rows, event, seen: device.wait(event),
            "stream waits": lambda device, rows, event, seen, s=stream: device.wait_event(s, event),
        }.get(kind, lambda *_: None)


def upload(wait: Step) -> list[Step]:
    """A copy, an event behind it, some wait, and the next filling of the source."""
    return [
        lambda device, rows, event, seen: device.copy("a", rows[0], rows[1]),
        lambda device, rows, event, seen: device.record(event, "a"),
        wait,
        lambda device, rows, event, seen: rows[0].fill_(99),
    ]


UPLOADS = [
    upload(lambda device, rows, event, seen: device.wait(event)),
    upload(lambda device, rows, event, seen: device.wait_event("b", event)),
]
"""Chance draws these too rarely: right, and wrong."""


@dataclass(frozen=True)
class Outcome:
    """All bytes that the host has read, then all there are in the end; what the device found; and what began and ended."""

    bytes: tuple[int, ...]
    found: StagingError | None
    log: list[tuple[str, str]]

    def overlap(self, first: str, second: str) -> bool:
        """Whether two operations overlapped in this run."""
        at = {entry: number for number, entry in enumerate(self.log)}
        return at[first, "begin"] < at[second, "end"] and at[second, "begin"] < at[first, "end"]


def run(loop: list[Step], schedule: Schedule) -> Outcome:
    device, seen = CheckedDevice(schedule), list[int]()
    rows = device.allocate(Memory.PINNED, 4 * SLOTS).view(SLOTS, 4)
    rows.copy_(torch.arange(4 * SLOTS).view(SLOTS, 4))
    event = device.event()
    for step in loop:
        step(device, rows, event, seen)
    for stream in STREAMS:
        device.synchronize(stream)
    seen += rows.flatten().tolist()
    found = device.finish()
    return Outcome(tuple(seen), found, [(str(label), moment.value) for label, moment in device.log])


def agreement(number: int, programs: int) -> Counter[str]:
    """Counts the loops of each kind. Loops with a finding that its own schedule does not show are false alarms."""
    draw, kinds = random.Random(number), Counter[str]()
    for loop in (*UPLOADS, *(list(steps(draw)) for _ in range(programs))):
        outcomes = [outcome for _, outcome in delays(partial(run, loop))]
        outcomes += [outcome for _, outcome in seeded(partial(run, loop), draw.randrange(1000), DRAWN)]
        found = outcomes[0].found
        assert all(str(outcome.found) == str(found) for outcome in outcomes), "what is found depends on what was issued alone"
        differ = len({outcome.bytes for outcome in outcomes}) > 1
        kinds[f"{'found' if found else 'nothing found'}, bytes {'differ' if differ else 'agree'}"] += 1
        if found is not None:
            kinds["false alarm"] += not run(loop, from_string(found.schedule)).overlap(*found.accesses)
    return kinds


def check(kinds: Counter[str]) -> None:
    found = kinds["found, bytes differ"] + kinds["found, bytes agree"]
    assert kinds["nothing found, bytes differ"] == 0
    assert kinds["false alarm"] == 0
    assert kinds["nothing found, bytes agree"] > sum(kinds.values()) // 10
    assert kinds["found, bytes differ"] > 0.7 * found, "the others write the same bytes twice, or bytes that nobody reads"


def test_findings_and_bytes_agree() -> None:
    check(agreement(0, PROGRAMS))


@pytest.mark.extended
@pytest.mark.parametrize("part", range(1, 9))
def test_findings_and_bytes_agree_in_many_loops(part: int) -> None:
    check(agreement(part, 4 * PROGRAMS))


def every_stream(accesses: Accesses, event: object, line: Line | None) -> None:
    for stream in STREAMS:
        accesses.synchronize(stream, line)


def other_stream(accesses: Accesses, event: object, stream: str, line: Line | None) -> None:
    RECORD(accesses, event, STREAMS[stream == STREAMS[0]], line)


RECORD = Accesses.record
MISTAKES: dict[str, tuple[str, Callable[..., None]]] = {
    "the host's uses are not noted": ("host", lambda *_: None),
    "waits for a stream are not noted": ("synchronize", lambda *_: None),
    "waits for an event are not noted": ("wait", lambda *_: None),
    "a wait for an event counts as one for every stream": ("wait", every_stream),
    "a record is noted on the other stream": ("record", other_stream),
    "a stream's wait counts as the host's": ("wait_event", lambda accesses, stream, event, line: accesses.wait(event, line)),
}


@pytest.mark.parametrize("name", often(MISTAKES, 2))
def test_a_device_that_notes_wrong_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Accesses, *MISTAKES[name])
    kinds = agreement(0, PROGRAMS // 2)
    assert kinds["nothing found, bytes differ"] or kinds["false alarm"]
