"""T3 on loops that deliver wrong rows, each wrong in one way: none is proved, and the search shows the row."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import z3

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Copy, HostCopy, HostWrite, Operation
from kvstage_model.language.scheme import Direction
from kvstage_model.symbolic.scheme_model import Instance
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.t3_provenance import Chain
from kvstage_proofs.theorems.t3_result import T3, queries
from tests.support.loops import WAIT, Body, Place, loop, staged, stored
from tests.support.tiers import often

PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
READ, WRITE = Direction.READ, Direction.WRITE


def moved(rows: Rows, by: int) -> Rows:
    """The same number of rows, further on."""
    return replace(rows, start=rows.start + by)


def from_the_next_row(place: Place, i: int) -> Iterator[Operation]:
    yield Copy("copy", moved(place.pooled(i), 1), place.staged(i))
    yield WAIT
    yield place.take(i)


def from_the_next_block(place: Place, i: int) -> Iterator[Operation]:
    rows = place.pooled(i)
    yield Copy("copy", replace(rows, slot=rows.slot + 1), place.staged(i))
    yield WAIT
    yield place.take(i)


def from_another_run(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(place.runs.number - 1 - i)
    yield WAIT
    yield place.take(i)


def to_the_next_row(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT
    yield HostCopy(place.staged(i), moved(place.delivered(i), 1))


def from_another_slot(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i, 1)
    yield WAIT
    yield place.take(i, 0)


def lost_first(place: Place, i: int) -> Iterator[Operation]:
    if i >= 1:
        yield from staged(place, i)


def nothing_taken(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT


def one_row_short(place: Place, i: int) -> Iterator[Operation]:
    run = place.runs.part(i)
    yield place.fetch(i)
    yield WAIT
    yield HostCopy(place.stage.at(0, 0, run.count - 1), place.out.at(0, run.position, run.count - 1))


def overwritten_in_between(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT
    yield place.scribble(i)
    yield place.take(i)


def filled_twice(place: Place, i: int) -> Iterator[Operation]:
    """Two writers of the staging buffer: the right rows, then others."""
    yield place.fetch(i)
    yield WAIT
    yield HostCopy(place.scratched(i), place.staged(i))
    yield place.take(i)


def filled_twice_right_last(place: Place, i: int) -> Iterator[Operation]:
    yield HostCopy(place.scratched(i), place.staged(i))
    yield place.fetch(i)
    yield WAIT
    yield place.take(i)


def sometimes_filled_twice(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT
    if i % 2 == 1:
        yield HostCopy(place.scratched(i), place.staged(i))
    yield place.take(i)


def delivered_twice(place: Place, i: int) -> Iterator[Operation]:
    """Two writers of the result: the right rows, then what the scratch buffer holds."""
    yield from staged(place, i)
    yield HostCopy(place.scratched(i), place.delivered(i))


def two_hops(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield WAIT
    yield HostCopy(place.staged(i), place.scratched(i))
    yield HostCopy(place.scratched(i), place.delivered(i))


def pool_overwritten_by_a_read(place: Place, i: int) -> Iterator[Operation]:
    yield from staged(place, i)
    yield place.store(i)
    yield WAIT


READS: dict[str, tuple[Body, int, int, Verdict]] = {
    "right": (staged, 1, 0, PROVED),
    "right, through two buffers": (two_hops, 1, 0, PROVED),
    "right, after another filling": (filled_twice_right_last, 1, 0, PROVED),
    "right, the host's buffer is longer": (staged, 1, 1, PROVED),
    "from the next row": (from_the_next_row, 1, 0, REFUTED),
    "from the next block": (from_the_next_block, 1, 0, REFUTED),
    "from another run": (from_another_run, 1, 0, REFUTED),
    "from another slot": (from_another_slot, 2, 0, REFUTED),
    "to the next row": (to_the_next_row, 1, 1, REFUTED),
    "the first run lost": (lost_first, 1, 0, REFUTED),
    "nothing taken": (nothing_taken, 1, 0, REFUTED),
    "each run one row short": (one_row_short, 1, 0, REFUTED),
    "overwritten in between": (overwritten_in_between, 1, 0, REFUTED),
    "filled twice": (filled_twice, 1, 0, REFUTED),
    "filled twice in odd steps": (sometimes_filled_twice, 1, 0, REFUTED),
    "delivered twice": (delivered_twice, 1, 0, REFUTED),
    "the pool written by a read": (pool_overwritten_by_a_read, 1, 0, UNKNOWN),  # with the same bytes
}


@pytest.mark.parametrize(("body", "slots", "longer", "verdict"), often(READS.values(), 5), ids=READS.keys())
def test_a_read(body: Body, slots: int, longer: int, verdict: Verdict) -> None:
    check(judge(T3.of(loop(body, slots=slots, longer=longer, direction=READ), "loop")), verdict)


def check(judgement: Any, verdict: Verdict) -> None:
    assert judgement.verdict is verdict, judgement.reason
    assert (judgement.counterexample is not None) == (verdict is REFUTED)
    assert verdict is not REFUTED or judgement.reason == "", "the solver took it for proved"


def to_the_next_pool_row(place: Place, i: int) -> Iterator[Operation]:
    yield place.fill(i)
    yield Copy("copy", place.staged(i), moved(place.pooled(i), 1))
    yield WAIT


def from_the_next_host_row(place: Place, i: int) -> Iterator[Operation]:
    yield HostCopy(moved(place.delivered(i), 1), place.staged(i))
    yield place.store(i)
    yield WAIT


def a_fixed_row_of_the_pool_too(place: Place, i: int) -> Iterator[Operation]:
    yield from stored(place, i)
    yield HostWrite(place.pool.at(0, 0, 1))


def source_cleared(place: Place, i: int) -> Iterator[Operation]:
    yield from stored(place, i)
    yield HostWrite(place.delivered(i))


def refilled_before_the_copy(place: Place, i: int) -> Iterator[Operation]:
    yield place.fill(i)
    yield HostCopy(place.scratched(i), place.staged(i))
    yield place.store(i)
    yield WAIT


WRITES: dict[str, tuple[Body, int, Verdict]] = {
    "right": (stored, 0, PROVED),
    "right, the host's buffer is longer": (stored, 1, PROVED),
    "to the next row of the pool": (to_the_next_pool_row, 0, REFUTED),
    "from the next row of the host": (from_the_next_host_row, 1, REFUTED),
    "another row of the pool written": (a_fixed_row_of_the_pool_too, 0, REFUTED),
    "the source cleared": (source_cleared, 0, REFUTED),
    "refilled before the copy": (refilled_before_the_copy, 0, REFUTED),
}


@pytest.mark.parametrize(("body", "longer", "verdict"), often(WRITES.values(), 3), ids=WRITES.keys())
def test_a_write(body: Body, longer: int, verdict: Verdict) -> None:
    check(judge(T3.of(loop(body, longer=longer, direction=WRITE), "loop")), verdict)


MORE: dict[str, Callable[[Place], tuple[Operation, ...]]] = {
    "a row of the host's buffer behind the transfer": lambda place: (HostWrite(place.out.at(0, place.runs.length, 1)),),
    "the first row again": lambda place: (HostWrite(place.out.at(0, 0, 1)),),
    "a row of the pool": lambda place: (HostWrite(place.pool.at(0, 0, 1)),),
}


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("more", often(MORE.values(), 2), ids=MORE.keys())
def test_a_row_written_after_the_loop(more: Callable[[Place], tuple[Operation, ...]], direction: Direction) -> None:
    body = staged if direction is READ else stored
    check(judge(T3.of(loop(body, longer=1, direction=direction, epilogue=more), "loop")), REFUTED)


@pytest.mark.parametrize("direction", Direction)
def test_the_last_step_missing(direction: Direction) -> None:
    body = staged if direction is READ else stored
    check(judge(T3.of(loop(body, direction=direction, steps=lambda runs: runs.number - 1), "loop")), REFUTED)


def test_a_scheme_that_states_no_result_is_unsupported() -> None:
    judgement = judge(T3.of(loop(staged), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert "states no result" in judgement.reason


def test_a_wrong_hint_proves_nothing_and_refutes_nothing() -> None:
    def hinted(**arguments: Any) -> Any:
        scheme = loop(staged, direction=READ)(**arguments)
        assert scheme.result is not None
        return replace(scheme, result=replace(scheme.result, step=lambda position: 0))

    function = replace(loop(staged, direction=READ), function=hinted)
    assert judge(T3.of(function, "loop")).verdict is UNKNOWN


@pytest.mark.parametrize("body", [filled_twice, sometimes_filled_twice])
def test_with_another_witness_for_each_query_a_second_filling_goes_unseen(body: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was PROVED: the right writer was the witness of where the row came from, the wrong one of what came between."""

    def any_writer(chain: Chain, cell: Rows, reader: Instance) -> Iterator[tuple[Instance, int, z3.BoolRef]]:
        yield from chain._writers(cell, reader)

    def claimed() -> Verdict:
        return verdict_of(tuple(ask(query) for query in queries(loop(body, direction=READ))))[0]

    assert claimed() is UNKNOWN
    monkeypatch.setattr(Chain, "witnesses", any_writer)
    assert claimed() is PROVED
