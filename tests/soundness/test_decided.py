"""What was left open, or had no answer: each gets its verdict, and so does its twin that differs by one mistake or its repair."""

from collections.abc import Callable, Iterator
from typing import Annotated

import pytest

from kvstage_model import (
    Acquire,
    Aim,
    AtLeast,
    Buffer,
    Copy,
    Direction,
    Event,
    Flags,
    HostCopy,
    HostWrite,
    Launch,
    Memory,
    Operation,
    Phase,
    QueryEvent,
    RecordEvent,
    Release,
    Result,
    Runs,
    Scheme,
    Session,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.parameters import SchemeFunction
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Judgement, Theorem, Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3

Turns, Size = Annotated[int, AtLeast(0)], Annotated[int, AtLeast(2)]
PROVED, REFUTED, UNSUPPORTED = Verdict.PROVED, Verdict.REFUTED, Verdict.UNSUPPORTED


def judged(theorem: Theorem[SchemeFunction], function: SchemeFunction) -> Judgement:
    return judge(theorem.of(function, "it"))


def ring(slots: int, waits_from: int | None) -> SchemeFunction:
    """A ring that waits for its slot from a step on; or never."""

    def scheme(turns: Turns) -> Scheme:
        pin, dev = Buffer("pin", Memory.PINNED, slots, 1), Buffer("dev", Memory.DEVICE, slots, 1)

        def step(i: int) -> Iterator[Operation]:
            if waits_from is not None and i >= waits_from:
                yield SyncEvent(Event("sent", i % slots), aim=i - slots)
            yield HostWrite(pin.at(i % slots, 0, 1))
            yield Copy("s", pin.at(i % slots, 0, 1), dev.at(i % slots, 0, 1))
            yield RecordEvent(Event("sent", i % slots), "s")

        return Scheme("ring", (pin, dev), turns, step, (SyncStream("s"),))

    return scheme


@pytest.mark.parametrize(
    ("slots", "waits_from", "verdict"),
    [(16, None, REFUTED), (16, 16, PROVED), (16, 17, REFUTED), (40, None, REFUTED), (40, 40, PROVED)],
)
def test_a_deep_ring(slots: int, waits_from: int | None, verdict: Verdict) -> None:
    judgement = judged(T1, ring(slots, waits_from))
    assert judgement.verdict is verdict, judgement.reason
    if judgement.counterexample is not None:
        assert judgement.counterexample.steps > slots
        assert judgement.counterexample.schedule


def late_mistake(at: int | None) -> SchemeFunction:
    """One slot, one wait a step, which is forgotten in one step."""

    def scheme(turns: Turns) -> Scheme:
        pin, dev = Buffer("pin", Memory.PINNED, 1, 1), Buffer("dev", Memory.DEVICE, 1, 1)

        def step(i: int) -> Iterator[Operation]:
            yield HostWrite(pin.at(0, 0, 1))
            yield Copy("s", pin.at(0, 0, 1), dev.at(0, 0, 1))
            if at is None or i != at:
                yield SyncStream("s")

        return Scheme("late", (pin, dev), turns, step, (SyncStream("s"),))

    return scheme


@pytest.mark.parametrize(("at", "verdict"), [(60, REFUTED), (None, PROVED)])
def test_a_mistake_in_a_late_step(at: int | None, verdict: Verdict) -> None:
    judgement = judged(T1, late_mistake(at))
    assert judgement.verdict is verdict, judgement.reason


def polling(waits: bool) -> SchemeFunction:
    """Two slots that are asked for; where both are busy, slot 0 is taken, with a wait or without."""

    def scheme(uploads: Annotated[int, AtLeast(1)], first: Flags, second: Flags) -> Scheme:
        slots, target = Buffer("slots", Memory.PINNED, 2, 1), Buffer("target", Memory.DEVICE, uploads, 1)

        def send(i: int, slot: int) -> Iterator[Operation]:
            yield HostWrite(slots.at(slot, 0, 1))
            yield Copy("s", slots.at(slot, 0, 1), target.at(i, 0, 1))
            yield RecordEvent(Event(f"sent {slot}"), "s")

        def step(i: int) -> Iterator[Operation]:
            yield QueryEvent(Event("sent 0"), first(i))
            if first(i):
                yield from send(i, 0)
            else:
                yield QueryEvent(Event("sent 1"), second(i))
                if waits and second(i) == 0:
                    yield SyncStream("s")
                yield from send(i, 1 if second(i) else 0)

        return Scheme("polling", (slots, target), uploads, step, (SyncStream("s"),))

    return scheme


@pytest.mark.parametrize(("waits", "verdict"), [(False, REFUTED), (True, PROVED)])
def test_answers_in_a_certain_order(waits: bool, verdict: Verdict) -> None:
    judgement = judged(T1, polling(waits))
    assert judgement.verdict is verdict, judgement.reason


def prefetch(waits: bool) -> SchemeFunction:
    """Waits for the stream, issues the next copy, takes the slot before; the twin does not wait."""

    def scheme(runs: Runs, slots: Size) -> Scheme:
        pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
        stage, out = Buffer("stage", Memory.PINNED, slots, runs.longest), Buffer("out", Memory.PAGEABLE, 1, runs.length)

        def step(i: int) -> Iterator[Operation]:
            if waits:
                yield SyncStream("s")
            if i < runs.number:
                run = runs.part(i)
                yield Copy("s", pool.at(run.slot, run.start, run.count), stage.at(i % slots, 0, run.count))
            if i > 0:
                run = runs.part(i - 1)
                yield HostCopy(stage.at((i - 1) % slots, 0, run.count), out.at(0, run.position, run.count))

        result = Result(Direction.READ, pool, out, runs.length, runs.address, lambda p: runs.holder(p) + 1)
        return Scheme("prefetch", (pool, stage, out), runs.number + 1, step, (SyncStream("s"),), result)

    return scheme


@pytest.mark.parametrize(("waits", "verdict"), [(True, PROVED), (False, REFUTED)])
def test_a_prefetch_that_waits_for_the_stream(waits: bool, verdict: Verdict) -> None:
    assert judged(T3, prefetch(waits)).verdict is verdict


def restored(aim: Callable[[int], int | Aim | None], waits_for: int = 1) -> SchemeFunction:
    """A state comes back layer by layer; one kernel in a loop of its own waits for the last layer's event."""

    def scheme(layers: Annotated[int, AtLeast(1)]) -> Session:
        saved, states = Buffer("saved", Memory.PINNED, 1, layers), Buffer("states", Memory.DEVICE, 1, layers)

        def turn(_: int) -> Iterator[Operation]:
            yield RecordEvent(Event("done"), "compute")
            yield WaitEvent("h2d", Event("done"), aim=0)

        def load(i: int) -> Iterator[Operation]:
            yield Copy("h2d", saved.at(0, i, 1), states.at(0, i, 1))
            yield RecordEvent(Event("loaded", i), "h2d")

        def use(_: int) -> Iterator[Operation]:
            yield WaitEvent("compute", Event("loaded", layers - waits_for), aim=aim(layers - waits_for))
            yield Launch("compute", reads=(states.at(0, 0, layers),))

        return Session.of("restored", (saved, states), Phase("turn", 1, turn), Phase("load", layers, load), Phase("use", 1, use))

    return scheme


@pytest.mark.parametrize(
    ("aim", "waits_for", "verdict"),
    [
        (lambda last: last, 1, PROVED),
        (lambda last: Aim(last, "load"), 1, PROVED),
        (lambda last: last, 2, REFUTED),
        (lambda last: Aim(last, "lode"), 1, UNSUPPORTED),
    ],
)
def test_an_aim_may_lie_in_another_loop(aim: Callable[[int], int | Aim | None], waits_for: int, verdict: Verdict) -> None:
    judgement = judged(T1, restored(aim, waits_for))
    assert judgement.verdict is verdict, judgement.reason
    if verdict is UNSUPPORTED:
        assert "names phase 'lode': there are turn, load, use" in judgement.reason


def lent(until: int) -> SchemeFunction:
    """Blocks are lent one by one, and taken back in another loop: all of them, or all but some."""

    def scheme(blocks: Annotated[int, AtLeast(1)]) -> Session:
        pool = Buffer("pool", Memory.DEVICE, blocks, 1)

        def post(i: int) -> Iterator[Operation]:
            yield Release(pool.at(i, 0, 1))

        def done(i: int) -> Iterator[Operation]:
            yield Acquire(pool.at(i, 0, 1))

        return Session.of("lent", (pool,), Phase("post", blocks, post), Phase("done", blocks - until, done))

    return scheme


@pytest.mark.parametrize(("until", "verdict"), [(0, PROVED), (1, REFUTED)])
def test_rows_are_taken_back_by_another_loop(until: int, verdict: Verdict) -> None:
    judgement = judged(T1, lent(until))
    assert judgement.verdict is verdict, judgement.reason
