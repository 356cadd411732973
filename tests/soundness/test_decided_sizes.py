"""Rows and steps at the edges of what is judged: past the end, none, a million, too many; each beside its twin."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import pytest

from kvstage_model import (
    Buffer,
    Copy,
    Gather,
    HostWrite,
    Launch,
    Memory,
    Operation,
    Paged,
    PagedRows,
    Runs,
    Scheme,
    SyncStream,
)
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.symbolic import purity
from kvstage_proofs.obligation import Theorem, Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t6_no_deadlock import T6
from kvstage_proofs.theorems.t7_bounds import T7
from tests.soundness.test_decided import PROVED, REFUTED, UNSUPPORTED, Size, Turns, judged, prefetch, ring


def kernel(shift: int, in_place: bool = False) -> SchemeFunction:
    def scheme(turns: Turns, count: Size) -> Scheme:
        pool = Buffer("pool", Memory.DEVICE, 1, count + shift)

        def step(_: int) -> Iterator[Operation]:
            yield Launch("s", (pool.at(0, 0, count),), (pool.at(0, shift, count),), in_place)

        return Scheme("kernel", (pool,), turns, step, epilogue=(SyncStream("s"),))

    return scheme


@pytest.mark.parametrize(("shift", "in_place", "verdict"), [(1, False, REFUTED), (0, False, PROVED), (1, True, PROVED)])
def test_a_kernel_that_reads_what_it_writes(shift: int, in_place: bool, verdict: Verdict) -> None:
    assert judged(T7, kernel(shift, in_place)).verdict is verdict


def whole(shift: int) -> SchemeFunction:
    def scheme(runs: Runs) -> Scheme:
        out, slot = Buffer("out", Memory.PINNED, 1, runs.length), Buffer("slot", Memory.PINNED, 1, runs.longest)

        def step(_: int) -> Iterator[Operation]:
            yield HostWrite(out.at(0, shift, runs.length))
            yield HostWrite(slot.at(0, 0, runs.longest))

        return Scheme("whole", (out, slot), 1, step)

    return scheme


@pytest.mark.parametrize(("shift", "verdict"), [(0, PROVED), (1, REFUTED)])
def test_all_rows_of_a_transfer_at_once(shift: int, verdict: Verdict) -> None:
    assert judged(T7, whole(shift)).verdict is verdict


def constant(steps: int, waits: bool) -> SchemeFunction:
    pin, dev = Buffer("pin", Memory.PINNED, 4, 1), Buffer("dev", Memory.DEVICE, 4, 1)

    def scheme(_: Turns) -> Scheme:
        def step(i: int) -> Iterator[Operation]:
            yield HostWrite(pin.at(i % 4, 0, 1))
            yield Copy("s", pin.at(i % 4, 0, 1), dev.at(0, 0, 1))
            if waits:
                yield SyncStream("s")

        return Scheme("constant", (pin, dev), steps, step)

    return scheme


@pytest.mark.parametrize(("waits", "verdict"), [(True, PROVED), (False, REFUTED)])
def test_a_million_steps(waits: bool, verdict: Verdict) -> None:
    assert judged(T1, constant(1_000_000, waits)).verdict is verdict
    assert judged(T6, constant(1_000_000, waits)).verdict is PROVED
    assert judged(T7, constant(1_000_000, waits)).verdict is PROVED


def wide(operations: int) -> SchemeFunction:
    rows = Buffer("rows", Memory.PINNED, operations, 1)

    def scheme(turns: Turns) -> Scheme:
        def step(_: int) -> Iterator[Operation]:
            for slot in range(operations):
                yield HostWrite(rows.at(slot, 0, 1))

        return Scheme("wide", (rows,), turns, step)

    return scheme


@pytest.mark.parametrize(
    ("operations", "words"), [(1000, "a step yields more than 100 operations"), (30, "T1 asks about up to 600"), (3, "")]
)
def test_a_step_of_many_operations(operations: int, words: str) -> None:
    judgement = judged(T1, wide(operations))
    assert judgement.verdict is (UNSUPPORTED if words else PROVED)
    assert words in judgement.reason


def packed(first: int) -> SchemeFunction:
    def scheme(rows: PagedRows) -> Scheme:
        length = rows.stop - rows.start
        pool, out = Buffer("pool", Memory.DEVICE, rows.num_blocks, rows.block_size), Buffer("out", Memory.PINNED, 1, length)

        def step(_: int) -> Iterator[Operation]:
            yield Gather("pack", Paged(pool, rows, 0, length), out.at(0, first, length))
            yield SyncStream("pack")

        return Scheme("pack", (pool, out), 1, step)

    return scheme


@pytest.mark.parametrize(("first", "verdict"), [(0, PROVED), (1, REFUTED)])
def test_a_kernel_for_a_transfer_of_no_rows(first: int, verdict: Verdict) -> None:
    assert judged(T1, packed(first)).verdict is PROVED
    assert judged(T7, packed(first)).verdict is verdict


@pytest.mark.extended
@pytest.mark.parametrize(
    ("make", "theorems"),
    [
        (partial(prefetch, waits=True), (T1, T3, T6, T7)),
        (partial(ring, 3, None), (T1, T6, T7)),
        (partial(kernel, 1), (T1, T6, T7)),
    ],
)
def test_verdicts_do_not_depend_on_what_was_asked_first(
    make: Callable[[], SchemeFunction], theorems: tuple[Theorem[SchemeFunction], ...]
) -> None:
    """Each order is asked of a function of its own, whose text nobody has read."""
    orders = list(permutations(theorems))
    found = set()
    for order in orders[:: len(orders) // 3]:
        purity._read.cache_clear()
        function = make()
        found.add(tuple(sorted((theorem.name, judged(theorem, function).verdict.value) for theorem in order)))
    assert len(found) == 1
