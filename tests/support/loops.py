"""Staging loops for tests, each made of a body: what a step does, told in a few words."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.language.operations import Copy, HostCopy, HostWrite, Operation, SyncStream
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.partitions import Runs
from kvstage_model.language.scheme import Direction, Result, Scheme

WAIT = SyncStream("copy")


@dataclass(frozen=True, eq=False)
class Place:
    """What a body may touch: the pool, a staging buffer of `slots` slots, a scratch buffer, and the result's rows."""

    runs: Runs
    pool: Buffer
    stage: Buffer
    scratch: Buffer
    out: Buffer

    def pooled(self, i: int) -> Rows:
        """The rows of run i in the pool."""
        run = self.runs.part(i)
        return self.pool.at(run.slot, run.start, run.count)

    def staged(self, i: int, slot: int = 0) -> Rows:
        """As many rows of the staging buffer."""
        return self.stage.at(slot, 0, self.runs.part(i).count)

    def scratched(self, i: int) -> Rows:
        """As many rows of the scratch buffer."""
        return self.scratch.at(0, 0, self.runs.part(i).count)

    def delivered(self, i: int) -> Rows:
        """The rows of run i where the host has them."""
        run = self.runs.part(i)
        return self.out.at(0, run.position, run.count)

    def fetch(self, i: int, slot: int = 0, stream: str = "copy") -> Copy:
        """Pool to staging buffer."""
        return Copy(stream, self.pooled(i), self.staged(i, slot))

    def take(self, i: int, slot: int = 0) -> HostCopy:
        """Staging buffer to result."""
        return HostCopy(self.staged(i, slot), self.delivered(i))

    def fill(self, i: int, slot: int = 0) -> HostCopy:
        """Host's rows to staging buffer."""
        return HostCopy(self.delivered(i), self.staged(i, slot))

    def scribble(self, i: int, slot: int = 0) -> HostWrite:
        """Somebody overwrites the staging buffer."""
        return HostWrite(self.staged(i, slot))

    def store(self, i: int, slot: int = 0, stream: str = "copy") -> Copy:
        """Staging buffer to pool."""
        return Copy(stream, self.staged(i, slot), self.pooled(i))


Body = Callable[[Place, int], Iterable[Operation]]


def loop(
    body: Body,
    *,
    epilogue: Callable[[Place], tuple[Operation, ...]] = lambda place: (),
    direction: Direction | None = None,
    slots: int = 1,
    steps: Callable[[Runs], int] = lambda runs: runs.number,
    longer: int = 0,
) -> Declared:
    """The scheme function of a body, over any runs. `longer`: rows of the host's buffer beyond the transfer's."""

    def scheme(runs: Runs) -> Scheme:
        pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
        stage, scratch = (Buffer(name, Memory.PINNED, slots, runs.longest) for name in ("stage", "scratch"))
        out = Buffer("out", Memory.PAGEABLE, 1, runs.length + longer)
        place = Place(runs, pool, stage, scratch, out)
        result = direction and Result(direction, pool, out, runs.length, runs.address, runs.holder)
        buffers = (pool, stage, scratch, out)
        return Scheme("test", buffers, steps(runs), lambda i: body(place, i), epilogue(place), result)

    return Declared(scheme, (Parameter("runs", Runs, distinct=direction is Direction.WRITE),))


def staged(place: Place, i: int) -> Iterable[Operation]:
    """The read that is right: copy, wait, take."""
    yield place.fetch(i)
    yield WAIT
    yield place.take(i)


def stored(place: Place, i: int) -> Iterable[Operation]:
    """The write that is right: fill, copy, wait."""
    yield place.fill(i)
    yield place.store(i)
    yield WAIT
