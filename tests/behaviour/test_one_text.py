"""Prover and library go by one text: what the one assumes or reads of a scheme, the other checks or reads too."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Annotated, Any

import pytest
import torch

from kvstage import DuplicateBlockError, PagedPool, Pair, SchemeError, SimDevice, Stager
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage_model.language import buffers, operations, scheme
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, Event, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Distinct, ParameterError, declared
from kvstage_model.language.partitions import Runs, by_row
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schedules.schedule import IssueOrder, Move
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_model.schemes.staged import staged_read
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7


def pool_of_numbers() -> PagedPool:
    """Eight blocks of a row, each with its number."""
    return PagedPool(torch.arange(8.0).view(8, 1, 1).expand(8, 1, 4).contiguous())


class LastOnS:
    """Stream "s" moves when nothing else can, stream "r" before all."""

    def choose(self, moves: tuple[Move, ...]) -> Move:
        """By stream."""
        return min(moves, key=lambda move: {OWN_STREAMS["r"]: 0, None: 1}.get(move.stream, 2))


def left_under_way(name: str) -> Callable[[Runs], Scheme]:
    """A write whose rows are used on its stream: it returns while they are copied."""

    def write(runs: Distinct[Runs]) -> Scheme:
        pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
        stage, rows = Buffer("stage", Memory.PINNED, 1, runs.longest), Buffer("rows", Memory.PAGEABLE, 1, runs.length)

        def step(i: int) -> Iterator[Operation]:
            run = runs.part(i)
            yield SyncEvent(Event("sent"), aim=i - 1)
            yield HostCopy(rows.at(0, run.position, run.count), stage.at(0, 0, run.count))
            yield Copy("s", stage.at(0, 0, run.count), pool.at(run.slot, run.start, run.count))
            yield RecordEvent(Event("sent"), "s")

        result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder, target_on="s")
        return Scheme(name, (pool, stage, rows), runs.number, step, result=result)

    return write


def on_another_stream(runs: Runs) -> Scheme:
    """A staged read on stream "r"."""
    pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
    stage, out = Buffer("stage", Memory.PINNED, 1, runs.longest), Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy("r", pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
        yield SyncStream("r")
        yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    return Scheme(
        "mine",
        (pool, stage, out),
        runs.number,
        step,
        result=Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder),
    )


def written_and_read() -> list[float]:
    """What two blocks hold that were written with 9, by a stager of two schemes of one name."""
    pool, write = pool_of_numbers(), left_under_way("mine")
    pair = Pair(lambda rows: on_another_stream(by_row(rows)), lambda rows: write(by_row(rows)))
    with SimDevice(LastOnS()) as device, Stager(device, scheme=pair) as stager:
        written, read = stager.write(pool, [0, 1], 0, torch.full((2, 4), 9.0)), stager.read(pool, [4, 5], 0, 2)
        read.wait()
        written.wait()
    return pool.tensor[:2, 0, 0].tolist()


def test_two_schemes_of_one_name_share_no_memory_and_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written_and_read() == [9.0, 9.0]
    monkeypatch.setattr("kvstage.selection.selector.Choosing.owner", lambda choosing, direction, choice: None)
    assert written_and_read() != [9.0, 9.0]


def ranged(default: Any) -> Callable[..., Scheme]:
    """A scheme of at least two slots, with a default."""

    def read(runs: Runs, slots: Annotated[int, AtLeast(2)] = default) -> Scheme:
        return ring_read(runs, slots)

    return read


@pytest.mark.parametrize("default", [1, True, 2.0, None])
def test_a_default_outside_its_range_is_refused_by_both(default: Any) -> None:
    with pytest.raises(ParameterError, match=r"parameter 'slots' of read has the default .* outside its declared range"):
        declared(ranged(default))
    with SimDevice(IssueOrder()) as device, pytest.raises(SchemeError, match="'slots' of read has the default"):
        Stager(device, scheme=Pair(ranged(default), ring_write))
    assert declared(ranged(2))[1].least == 2


def bound(rows: PagedRows, slots: Annotated[int, AtLeast(2)]) -> Scheme:
    """A ring of at least two slots, as the library calls it."""
    return ring_read(by_row(rows), slots)


def test_a_number_below_its_range_is_refused_before_anything_is_issued() -> None:
    pool = pool_of_numbers()
    for slots, fits in ((1, False), (2, True)):
        with SimDevice(IssueOrder()) as device, Stager(device, scheme=Pair(bound, bound), slots=slots) as stager:
            if fits:
                read = stager.read(pool, [3], 0, 1)
                read.wait()
                assert read.result().tolist() == [[3.0] * 4]
            else:
                with pytest.raises(SchemeError, match="slots is 1, and the scheme is proved for slots of at least 2"):
                    stager.read(pool, [3], 0, 1)
                assert device.copies == 0


def once_each(rows: Distinct[PagedRows]) -> Scheme:
    """A read that is proved for tables without a block twice."""
    return staged_read(by_row(rows))


def as_often(rows: PagedRows) -> Scheme:
    """A read of any table."""
    return staged_read(by_row(rows))


def test_a_read_that_is_proved_for_distinct_blocks_gets_no_block_twice() -> None:
    pool = pool_of_numbers()
    with (
        SimDevice(IssueOrder()) as device,
        Stager(device, scheme=Pair(once_each, as_often)) as stager,
        pytest.raises(DuplicateBlockError),
    ):
        stager.read(pool, [3, 3], 0, 2)
    with SimDevice(IssueOrder()) as device, Stager(device, scheme=Pair(as_often, as_often)) as stager:
        read = stager.read(pool, [3, 3], 0, 2)
        read.wait()
        assert read.result()[:, 0].tolist() == [3.0, 3.0]


class Own(Scheme):
    """A scheme of a class of its own."""


def of_its_own(rows: PagedRows) -> Scheme:
    right = staged_read(by_row(rows))
    return Own(*(getattr(right, each.name) for each in fields(right)))


def of_a_call(rows: PagedRows) -> Scheme:
    return replace(staged_read(by_row(rows)), prologue=(RecordEvent(Event("e", 0, 1), "copy"),))


@pytest.mark.parametrize(("read", "what"), [(of_its_own, "is no plain Scheme"), (of_a_call, "leave `call` out")])
def test_what_the_prover_has_no_meaning_for_the_library_refuses(read: Callable[..., Scheme], what: str) -> None:
    with SimDevice(IssueOrder()) as device, Stager(device, scheme=Pair(read, read)) as stager:
        with pytest.raises(SchemeError, match=what):
            stager.read(pool_of_numbers(), [3], 0, 1)
        assert device.copies == 0


# -- what each reads of a scheme

RECORDS = (scheme.Scheme, scheme.Result, buffers.Buffer, buffers.Rows, buffers.Paged)
ISSUED = (Copy, HostCopy, RecordEvent, SyncEvent, SyncStream, operations.WaitEvent, Event)
HINTS = {"SyncEvent.aim", "SyncStream.aim", "WaitEvent.aim", "Result.step"}
"""What a proof takes as a hint, and proves: it need not be right, so nobody need read it to run a scheme."""
PROMISES = {"Result.address", "Result.direction", "Result.host_address", "Result.first"}
"""What a scheme promises, and no part of what it does: T3 proves it of what runs."""
WORDS = {"Scheme.name"}
"""What messages and hooks call it."""
OF_THE_CALLER = {"Buffer.memory"}
"""Which memory the caller's buffers are in is checked where they come from."""


def noted(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> set[str]:
    """The fields of records that a run reads, by any name."""
    seen: set[str] = set()
    with monkeypatch.context() as patch:
        for kind in (*RECORDS, *ISSUED):
            names = frozenset(each.name for each in fields(kind))

            def read(record: object, name: str, names: frozenset[str] = names, word: str = kind.__name__) -> object:
                if name in names:
                    seen.add(f"{word}.{name}")
                return object.__getattribute__(record, name)

            patch.setattr(kind, "__getattribute__", read)
        run()
    return seen


def prove() -> None:
    """T1, T3 and T7 of a ring in both directions, without the reading of texts, which reads every field there is."""
    for function in (ring_read, ring_write):
        assert [judge(theorem.of(function, "ring")).verdict for theorem in (T1, T3, T7)] == [Verdict.PROVED] * 3


def perform() -> None:
    """The same loops by the library."""
    pool = pool_of_numbers()
    with SimDevice(IssueOrder()) as device, Stager(device, scheme="ring", slots=2) as stager:
        stager.write(pool, [0, 1, 2], 0, torch.full((3, 4), 9.0)).wait()
        stager.read(pool, [4, 5, 0], 0, 3).wait()


def test_the_library_reads_all_of_a_scheme_that_is_proved_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvstage_model.symbolic.scheme_model.demand_pure", lambda value: None)
    proved, performed = noted(monkeypatch, prove), noted(monkeypatch, perform)
    assert {"Copy.stream", "Rows.slot", "Event.index", "Event.call", "Scheme.epilogue", "Scheme.fresh_events"} <= proved & performed
    assert performed - proved == WORDS
    assert proved - performed - HINTS - PROMISES - OF_THE_CALLER == set()
