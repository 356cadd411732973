"""A1 to A6 on real drivers: what the axioms order is in that order by the times that worker threads and PoCL note.

A program is issued on two streams, some of its work held back until somebody waits for it. Every order of two moments
that follows from the axioms is then looked up in the measured times.
"""

import random
from collections import Counter

import pytest
import torch

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, without
from kvstage_model.language.operations import Copy, HostCopy, OnStream, Operation, RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.ordering.axioms import Moment, edges
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import HappensBefore, races
from kvstage_model.schemes.registry import LIBRARY
from tests.support.devices import REAL, everything
from tests.support.driven import BUFFERS, EVENTS, STREAMS, Driven, broken, drive, kept_apart, random_operations

ONE, TWO = STREAMS
DONE = EVENTS[0]
LEFT, RIGHT = BUFFERS
A, B, C = LEFT.at(0, 0, 1), RIGHT.at(0, 0, 1), LEFT.at(1, 0, 1)


@pytest.fixture(params=REAL)
def device(request):
    with REAL[request.param]() as device:
        yield device


def numbered(operations: list[Operation]) -> tuple[Issued, ...]:
    return tuple(Issued(0, "loop", step, operation) for step, operation in enumerate(operations))


def random_run(device, number: int) -> Driven:
    rng = random.Random(number)
    operations, row_bytes, share = random_operations(rng, rng.randint(6, 16)), rng.choice([16, 1024, 1 << 17]), rng.random()
    held = random.Random(number)
    return drive(device, operations, row_bytes, lambda stream, index: held.random() < share)


def judged(device, numbers: range) -> Counter[str]:
    """How many orders of moments the axioms gave in random programs, by axiom where it is direct; none was broken."""
    seen: Counter[str] = Counter()
    for number in numbers:
        run = random_run(device, number)
        assert broken(run.program, run.at) == [], f"program {number}"
        order = HappensBefore(run.program)
        for second, issued in enumerate(run.program):
            for first in range(second):
                direct = (edge for edge in edges(run.program[first].operation, issued.operation) if edge.when)
                seen.update(edge.axiom for edge in direct if order.ordered(first, edge.earlier, second, edge.later))
        seen["A2"] += sum(isinstance(issued.operation, OnStream) for issued in run.program)
        seen["works kept apart"] += len(list(kept_apart(run.program)))
    return seen


def test_random_programs_keep_every_order_that_the_axioms_give(device):
    seen = judged(device, range(30))
    assert set(seen) == {"A1", "A2", "A3", "A4", "A5", "A6", "works kept apart"}
    assert min(seen.values()) > 5


@pytest.mark.extended
@pytest.mark.parametrize("part", range(1, 9))
def test_hundreds_of_random_programs_keep_it(device, part):
    seen = judged(device, range(100 * part, 100 * part + 60))
    assert min(seen.values()) > 15


# -- the check can fail


def test_two_times_that_are_swapped_are_seen(device):
    """Of the works that the axioms keep apart: each pair of which neither is empty of time."""
    swapped = 0
    for number in range(12):
        run = random_run(device, number)
        for first, second in kept_apart(run.program):
            end, begin = (first, Moment.END), (second, Moment.BEGIN)
            if run.at[end] == run.at[begin]:
                continue
            times = {**run.at, end: run.at[begin], begin: run.at[end]}
            assert (*end, *begin) in broken(run.program, times)
            swapped += 1
    assert swapped > 20


def unordered(device, stream, *operands):
    """Work of a stream goes to two queues in turn."""
    device.turn = not getattr(device, "turn", False)
    super(type(device), device).copy(stream + "'" * device.turn, *operands)


WORK, RECORD = Copy(ONE, A, B), RecordEvent(DONE, ONE)
BREAKS = {
    "A3": ("copy", unordered, [WORK, Copy(ONE, A, C), SyncStream(ONE)]),
    "A4": ("synchronize", lambda device, stream: None, [WORK, SyncStream(ONE)]),
    "A5": ("wait", lambda device, event: None, [WORK, RECORD, SyncEvent(DONE)]),
    "A6": (
        "wait_event",
        lambda device, stream, event: super(type(device), device).wait_event(stream, device.event()),
        [WORK, RECORD, WaitEvent(TWO, DONE), Copy(TWO, B, C), SyncStream(TWO)],
    ),
}


@pytest.mark.parametrize("kind", REAL.values())
@pytest.mark.parametrize("axiom", BREAKS)
def test_a_device_that_breaks_an_axiom_is_seen(kind, axiom):
    """The first copy is held back until somebody waits for it."""
    name, method, operations = BREAKS[axiom]
    seen = []
    for methods in ({name: method}, {}):
        with type("Mistaken", (kind,), methods)() as device:

            def finish(stream: str, device=device) -> None:
                for queue in (stream, stream + "'"):
                    kind.synchronize(device, queue)

            run = drive(device, operations, hold=lambda stream, index: index == 0, finish=finish)
        seen.append(bool(broken(run.program, run.at)))
    assert seen == [True, False]


CLAIMS = {
    "A4: a synchronize that was not made": ([Copy(ONE, A, B), HostCopy(B, A)], 1, SyncStream(ONE)),
    "A5: a wait that was not made": ([Copy(ONE, A, B), RecordEvent(DONE, ONE), HostCopy(B, A)], 2, SyncEvent(DONE)),
    "A6: a stream's wait that was not made": (
        [Copy(ONE, A, B), RecordEvent(DONE, ONE), Copy(TWO, B, C), SyncStream(TWO)],
        2,
        WaitEvent(TWO, DONE),
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claimed_wait_that_was_not_made_is_seen_and_one_that_was_made_is_kept(device, claim):
    operations, at, wait = CLAIMS[claim]
    hold = lambda stream, index: index == 0  # noqa: E731
    run = drive(device, operations, hold=hold)
    assert broken(run.program, run.at) == []
    claimed = numbered([*operations[:at], wait, *operations[at:]])
    times = {(index + (index >= at), moment): time for (index, moment), time in run.at.items()}
    times |= {(at, moment): run.at[at, Moment.ISSUE] for moment in Moment}
    assert (0, Moment.END, at, Moment.END) in broken(claimed, times)
    whole = drive(device, [issued.operation for issued in claimed], hold=hold)
    assert broken(whole.program, whole.at) == []
    assert whole.at[0, Moment.END] <= whole.at[at + 1, Moment.BEGIN]


def test_a_claim_that_two_streams_are_one_is_seen(device):
    operations = [Copy(ONE, A, B), Copy(TWO, A, C), SyncStream(TWO)]
    run = drive(device, operations, hold=lambda stream, index: index == 0)
    assert broken(run.program, run.at) == []
    one = numbered([Copy(ONE, A, B), Copy(ONE, A, C), SyncStream(ONE)])
    assert (0, Moment.END, 1, Moment.BEGIN) in broken(one, run.at)


# -- broken variants: what the model calls a race happens


def ring() -> tuple[list[Operation], Named]:
    rows = PagedRows(lambda k: [3, 0, 2, 1][k], 4, 2, 0, 8)
    return LIBRARY["ring"].read(rows, 2), Named(SyncEvent)


def performed(scheme) -> list[Operation]:
    return [operation for step in range(scheme.steps) for operation in scheme.step(step)]


def test_a_ring_without_its_waits_takes_rows_that_have_not_come_and_with_them_it_does_not(device):
    scheme, waits = ring()
    right, wrong = (drive(device, performed(each), hold=everything) for each in (scheme, without(waits)(scheme)))
    pool = right.memory["pool"]
    expected = torch.cat([pool[block] for block in [3, 0, 2, 1]])
    assert torch.equal(right.memory["out"][0], expected)
    assert not torch.equal(wrong.memory["out"][0], expected)
    assert list(races(right.program)) == []
    pairs = [(race.first, race.second) for race in races(wrong.program)]
    late = [(copy, take) for copy, take in pairs if wrong.at[copy, Moment.END] > wrong.at[take, Moment.BEGIN]]
    assert late, "a copy ended after the host had begun to take its rows"
    assert broken(wrong.program, wrong.at) == [], "it is the scheme that is wrong, not the driver"


def test_a_copy_and_the_host_really_overlap_where_no_wait_keeps_them_apart(device):
    """Nothing is held: a copy of 32 MB is under way when the host begins. Tried until it is seen, as it is a real driver."""
    source, target, taken = (Buffer(name, Memory.PINNED, 1, 1).at(0, 0, 1) for name in ("source", "target", "taken"))
    operations = [Copy(ONE, source, target), HostCopy(target, taken)]
    assert [(race.first, race.second) for race in races(numbered(operations))] == [(0, 1)]

    def overlap(*operations: Operation) -> bool:
        run = drive(device, operations, 1 << 25)
        last = len(operations) - 1
        return run.at[0, Moment.BEGIN] < run.at[last, Moment.END] and run.at[last, Moment.BEGIN] < run.at[0, Moment.END]

    assert any(overlap(*operations) for _ in range(60))
    waited = [operations[0], SyncStream(ONE), operations[1]]
    assert HappensBefore(numbered(waited)).apart(0, 2)
    assert not any(overlap(*waited) for _ in range(3))


def test_a_hoisted_wait_covers_nothing(device):
    """The stream waits for the event before it was recorded: it goes on at once, and copies what is not there yet."""
    work, record, wait, use = Copy(ONE, A, B), RecordEvent(DONE, ONE), WaitEvent(TWO, DONE), Copy(TWO, B, C)
    right = drive(device, [work, record, wait, use, SyncStream(TWO)], hold=everything)
    hoisted = drive(device, [wait, work, record, use, SyncStream(TWO)], hold=everything)
    source = right.memory["left"][0, 0]
    assert torch.equal(right.memory["left"][1, 0], source)
    assert not torch.equal(hoisted.memory["left"][1, 0], source)
    assert right.at[0, Moment.END] <= right.at[3, Moment.BEGIN]
    assert hoisted.at[3, Moment.END] <= hoisted.at[1, Moment.BEGIN]
    assert [(race.first, race.second) for race in races(hoisted.program)] == [(1, 3)]
