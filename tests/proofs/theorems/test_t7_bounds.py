"""T7 on operations that leave their buffers, and on the sizes that the catalogue's schemes just need."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated

import pytest

from kvstage_model import schemes
from kvstage_model.language.bounds import bounds
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.contract import Clause
from kvstage_model.language.edits import Edit, edited
from kvstage_model.language.operations import Copy, HostCopy, HostRead, HostWrite, Launch, Operation, SyncStream, placed
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, allowing_duplicates
from kvstage_model.language.partitions import by_row
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.search import faults
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems import t7_bounds as module
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.loops import Body, Place, loop, staged
from tests.support.tiers import often

PROVED, REFUTED, VACUOUS, UNKNOWN, *_ = Verdict


def beyond_the_slot(place: Place, i: int) -> Iterator[Operation]:
    run = place.runs.part(i)
    yield HostWrite(place.stage.at(0, 1, run.count))


def a_slot_too_far(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i, 1)


def the_step_as_a_slot(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i, i)


def before_the_slot(place: Place, i: int) -> Iterator[Operation]:
    yield HostRead(place.stage.at(0, -1, 1))


def a_negative_count(place: Place, i: int) -> Iterator[Operation]:
    yield HostRead(place.stage.at(0, 0, place.runs.part(i).count - 2))


def onto_itself(place: Place, i: int) -> Iterator[Operation]:
    yield Copy("copy", place.staged(i), place.staged(i))


def of_two_lengths(place: Place, i: int) -> Iterator[Operation]:
    yield HostCopy(place.stage.at(0, 0, 1), place.scratched(i))


def never(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    if i > place.runs.number:
        yield HostRead(place.staged(i))


CASES: dict[str, tuple[Body, Verdict, str]] = {
    "copy, wait, take": (staged, PROVED, ""),
    "beyond its slot": (beyond_the_slot, REFUTED, "the rows of stage lie inside its slot"),
    "a slot too far": (a_slot_too_far, REFUTED, "the slot of stage exists"),
    "the step as a slot": (the_step_as_a_slot, REFUTED, "the slot of stage exists"),
    "before its slot": (before_the_slot, REFUTED, "the rows of stage lie inside its slot"),
    "a negative count": (a_negative_count, REFUTED, "the count of rows of stage is not negative"),
    "onto itself": (onto_itself, REFUTED, "source and target are disjoint"),
    "of two lengths": (of_two_lengths, REFUTED, "source and target have as many rows"),
    "an operation that can never exist": (never, VACUOUS, "HostRead of loop[i]"),
}


@pytest.mark.parametrize(("body", "verdict", "said"), CASES.values(), ids=CASES.keys())
def test_the_verdict(body: Body, verdict: Verdict, said: str) -> None:
    judgement = judge(T7.of(loop(body), "loop"))
    assert judgement.verdict is verdict, judgement.reason
    assert said in (judgement.counterexample.wrong if judgement.counterexample else judgement.reason)


def resized(name: str, rows: Callable[[int], int] | None = None, slots: Callable[[int], int] | None = None) -> Edit:
    """An edit that changes the sizes of one buffer, wherever the scheme names it."""

    def changed(old: Buffer) -> Buffer:
        if old.name != name:
            return old
        return Buffer(name, old.memory, slots(old.slots) if slots else old.slots, rows(old.rows) if rows else old.rows)

    def swap(issued: Iterable[Operation]) -> Iterator[Operation]:
        for operation in issued:
            yield placed(operation, lambda access: replace(access, buffer=changed(access.buffer)))

    def edit(scheme: Scheme) -> Scheme:
        assert scheme.result is not None
        result = replace(scheme.result, pool=changed(scheme.result.pool), host=changed(scheme.result.host))
        buffers = tuple(changed(buffer) for buffer in scheme.buffers)
        return replace(scheme.changed(swap, "resized"), buffers=buffers, result=result)

    return edit


FUNCTIONS = (
    (schemes.staged_read, ("stage", "out", "pool")),
    (schemes.staged_write, ("stage", "rows", "pool")),
    (schemes.gather_pinned_read, ("out", "pool")),
    (schemes.gather_pinned_write, ("rows", "pool")),
    (schemes.ring_read, ("stage",)),
    (schemes.ring_write, ("stage",)),
    (schemes.gather_read, ("packed", "stage")),
    (schemes.gather_write, ("packed", "stage", "pool")),
)
TIGHT = [(function, name, field) for function, names in FUNCTIONS for name in names for field in ("rows", "slots")]


@pytest.mark.parametrize(("function", "name", "field"), often(TIGHT, 8))
def test_every_buffer_is_as_large_as_it_must_be(function: SchemeFunction, name: str, field: str) -> None:
    """One row or slot less, and T7 falls: the proof is about the sizes that the scheme states."""
    judgement = judge(T7.of(edited(function, resized(name, **{field: lambda size: size - 1})), "smaller"))
    assert judgement.verdict is REFUTED
    assert judge(T7.of(edited(function, resized(name, **{field: lambda size: size + 1})), "larger")).verdict is PROVED


SCATTERS = (schemes.gather_pinned_write, schemes.gather_write)


@pytest.mark.parametrize("function", SCATTERS)
def test_a_scatter_needs_a_table_without_repetition(function: SchemeFunction) -> None:
    """Two rows of one kernel to one address: it races with itself, which no pair of operations shows."""
    assert judge(T7.of(function, "distinct")).verdict is PROVED
    judgement = judge(T7.of(allowing_duplicates(function), "twice"))
    assert judgement.verdict is REFUTED
    assert judgement.counterexample is not None
    assert judgement.counterexample.wrong.endswith("not so: no row of pool is written twice")


@pytest.mark.parametrize("function", SCATTERS)
def test_without_the_demand_the_repetition_goes_unseen(function: SchemeFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    def fewer(operation: Operation, row: int, other: int) -> Iterator[Clause]:
        return (clause for clause in bounds(operation, row, other) if "twice" not in clause.name)

    monkeypatch.setattr(module, "bounds", fewer)
    asked = tuple(ask(query) for query in module.queries(allowing_duplicates(function)))
    assert verdict_of(asked)[0] is PROVED


@pytest.mark.parametrize(("memory", "verdict"), [(Memory.DEVICE, REFUTED), (Memory.PINNED, PROVED), (Memory.PAGEABLE, PROVED)])
def test_the_host_reads_no_memory_of_the_device(memory: Memory, verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        rows = Buffer("rows", memory, 1, 1)
        return Scheme("reads", (rows,), n, lambda i: (HostRead(rows.at(0, 0, 1)),))

    judgement = judge(T7.of(scheme, "reads"))
    assert judgement.verdict is verdict
    if judgement.counterexample is not None:
        assert judgement.counterexample.wrong.endswith("not so: the host can address rows, which is memory of the device")
        for named in (module, faults):
            monkeypatch.setattr(named, "unaddressed", lambda operation: ())
        assert judge(T7.of(scheme, "reads")).verdict is PROVED


def test_the_caller_who_overwrites_the_pool_stands_for_a_kernel() -> None:
    assert schemes.staged_read(by_row(PagedRows(lambda _: 0, 1, 1, 0, 1))).buffers[0].memory is Memory.DEVICE
    assert judge(T7.of(schemes.staged_read, "staged", "read")).verdict is PROVED


@pytest.mark.parametrize(("start", "verdict"), [(1, REFUTED), (2, PROVED)])
def test_what_one_kernel_writes_is_disjoint(start: int, verdict: Verdict) -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        rows = Buffer("rows", Memory.DEVICE, 1, 4)
        return Scheme(
            "writes", (rows,), n, lambda i: (Launch("s", writes=(rows.at(0, 0, 2), rows.at(0, start, 2))), SyncStream("s"))
        )

    assert judge(T7.of(scheme, "writes")).verdict is verdict
