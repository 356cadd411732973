"""No race, and wrong rows: bugs that look like a missing wait, and are not. T1 is PROVED of them, and another theorem falls."""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory
from ..language.operations import Copy, HostCopy, Operation, SyncStream
from ..language.partitions import Runs
from ..language.scheme import Direction, Result, Scheme
from .case import Case, Edge, Fix


def _buffers(runs: Runs, slots: int) -> tuple[Buffer, Buffer, Buffer]:
    pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
    stage = Buffer("stage", Memory.PINNED, slots, runs.longest)
    return pool, stage, Buffer("out", Memory.PAGEABLE, 1, runs.length)


def refilled_before_use(runs: Runs) -> Scheme:
    """Two slots, and a run is taken two steps after it was fetched: its slot holds a later run then. Each copy is waited for."""
    pool, stage, out = _buffers(runs, 2)

    def step(i: int) -> Iterator[Operation]:
        if i < runs.number:
            run = runs.part(i)
            yield Copy("prefetch", pool.at(run.slot, run.start, run.count), stage.at(i % 2, 0, run.count))
            yield SyncStream("prefetch")
        if i >= 2:
            run = runs.part(i - 2)
            yield HostCopy(stage.at(i % 2, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, lambda p: runs.holder(p) + 2)
    return Scheme("refilled before use", (pool, stage, out), runs.number + 2, step, result=result)


def used_before_refill(runs: Runs) -> Scheme:
    """A run is taken in the step after it was fetched, while its slot is still its own."""
    pool, stage, out = _buffers(runs, 2)

    def step(i: int) -> Iterator[Operation]:
        if i < runs.number:
            run = runs.part(i)
            yield Copy("prefetch", pool.at(run.slot, run.start, run.count), stage.at(i % 2, 0, run.count))
            yield SyncStream("prefetch")
        if i >= 1:
            run = runs.part(i - 1)
            yield HostCopy(stage.at((i - 1) % 2, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, lambda p: runs.holder(p) + 1)
    return Scheme("used before refill", (pool, stage, out), runs.number + 1, step, result=result)


N05 = Case(
    "N05",
    "A prefetch ring overwrites a slot that is still to be used",
    ("vllm-project/vllm#54975",),
    ("host", "prefetch stream"),
    Edge.NONE,
    "the refill goes to the slot of a module that was not run yet, in program order and with all its events",
    refilled_before_use,
    (Fix("refill a slot after its module was used", used_before_refill),),
    theorem="T3",
)


def token_taken_for_page(runs: Runs) -> Scheme:
    """The position of a row in its sequence is used as the number of a page."""
    pool, stage, out = _buffers(runs, 1)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy("load", pool.at(run.position, run.start, run.count), stage.at(0, 0, run.count))
        yield SyncStream("load")
        yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("token taken for page", (pool, stage, out), runs.number, step, result=result)


def page_of_the_token(runs: Runs) -> Scheme:
    """The page is looked up in the block table."""
    pool, stage, out = _buffers(runs, 1)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy("load", pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
        yield SyncStream("load")
        yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("page of the token", (pool, stage, out), runs.number, step, result=result)


N09 = Case(
    "N09",
    "A token index is used as a page index",
    ("sgl-project/sglang#31218", "vllm-project/vllm#50653"),
    ("host", "load stream"),
    Edge.NONE,
    "the index leaves the pool as soon as a sequence is longer than the pool has pages, and names another page before",
    token_taken_for_page,
    (Fix("look the page up in the block table", page_of_the_token),),
    theorem="T7",
)


def every_other_run(runs: Runs) -> Scheme:
    """Rows of one kind are restored, and those of the other are not."""
    pool, stage, out = _buffers(runs, 1)

    def step(i: int) -> Iterator[Operation]:
        if i % 2 == 0:
            run = runs.part(i)
            yield Copy("load", pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
            yield SyncStream("load")
            yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("every other run", (pool, stage, out), runs.number, step, result=result)


N19 = Case(
    "N19",
    "Side rows are not restored with the cache",
    ("sgl-project/sglang#30057", "sgl-project/sglang#38212"),
    ("host", "load stream"),
    Edge.NONE,
    "a copy is missing, not an order",
    every_other_run,
    (Fix("restore all of them", page_of_the_token),),
    theorem="T3",
)

CASES = (N05, N09, N19)
