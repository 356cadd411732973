"""What drivers often do and nothing promises: no axiom. Each of these habits hides a mistake, which is shown here.

A habit is stated as what it comes to: the host waits for the operation before it goes on.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Edit, Named, edited, without
from kvstage_model.language.operations import Copy, Gather, HostCopy, Launch, Operation, Scatter, SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import Runs
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.schemes.base import STREAM, pool_of
from kvstage_model.schemes.gather import gather_pinned_read

from ..judging.judge import judge
from ..obligation import Theorem, Verdict
from ..theorems.t1_no_hazard import T1
from ..theorems.t3_result import T3


@dataclass(frozen=True)
class Habit:
    """Something that a driver may do: `of` tells the operations that the host then waits for. It hides `mistake`."""

    words: str
    of: Callable[[Operation], bool]
    mistake: SchemeFunction
    in_words: str


def pageable(operation: Operation) -> bool:
    """Whether it is a copy to or from pageable memory."""
    return isinstance(operation, Copy) and Memory.PAGEABLE in (operation.source.buffer.memory, operation.target.buffer.memory)


def kernel(operation: Operation) -> bool:
    """Whether it is a kernel."""
    return isinstance(operation, Gather | Scatter | Launch)


def blocking(of: Callable[[Operation], bool]) -> Edit:
    """The host waits for each of these operations before it goes on."""

    def waiting(operations: Iterable[Operation]) -> Iterator[Operation]:
        for operation in operations:
            yield operation
            if isinstance(operation, Copy | Gather | Scatter | Launch) and of(operation):
                yield SyncStream(operation.stream)

    return lambda scheme: scheme.changed(waiting, f"{scheme.name} where some operations block")


def unpinned_read(runs: Runs) -> Scheme:
    """A staged read whose staging buffer is not pinned, and which nothing waits for."""
    pool, stage = pool_of(runs), Buffer("stage", Memory.PAGEABLE, 1, runs.longest)
    out = Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
        yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("unpinned read", (pool, stage, out), runs.number, step, result=result)


HABITS = (
    Habit(
        "a copy to or from pageable memory blocks the host",
        pageable,
        unpinned_read,
        "a read through pageable memory that waits for nothing",
    ),
    Habit(
        "a kernel is never slow: it has ended before the host goes on",
        kernel,
        edited(gather_pinned_read, without(Named(SyncStream, STREAM))),
        "a kernel that writes the pinned result, and no wait for it",
    ),
)


def verdicts(habit: Habit, theorem: Theorem[SchemeFunction]) -> tuple[Verdict, Verdict]:
    """The verdicts on the mistake that a habit hides: by the axioms alone, and if the habit is believed."""
    alone = judge(theorem.of(habit.mistake, habit.in_words, expected=Verdict.REFUTED))
    believed = judge(theorem.of(edited(habit.mistake, blocking(habit.of)), habit.in_words))
    return alone.verdict, believed.verdict


def footnotes() -> Iterator[str]:
    """What is no axiom, and what each would hide."""
    for habit in HABITS:
        (alone, believed), (alone_3, believed_3) = verdicts(habit, T1), verdicts(habit, T3)
        yield (
            f"no axiom: {habit.words}. It would hide {habit.in_words}: "
            f"T1 {alone.value}, T3 {alone_3.value}; were it believed, T1 {believed.value}, T3 {believed_3.value}"
        )
