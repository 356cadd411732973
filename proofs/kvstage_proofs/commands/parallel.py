"""Runs many obligations, in as many processes as there are processors, and hands out the judgements in their order.

An obligation holds functions, which can't cross between processes; so each worker states the obligations of the same
targets again and judges the k-th, and its statement must be the one that was asked for.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context

from ..judging.judge import Review, judge
from ..obligation import Judgement, Obligation, Statement
from ..targets.names import obligations
from ..theorems.t3_result import T3


class RunnerError(Exception):
    """The run itself failed, whatever the obligations are worth."""


def judge_all(
    targets: tuple[str, ...], stated: Sequence[Obligation], progress: Callable[[int], None], reviews: tuple[Review, ...] = ()
) -> Iterator[Judgement]:
    """The judgements on `stated`, which are the obligations of `targets`, in order.

    Calls `progress` with the number of judgements that are there, each time one more is. Raises RunnerError if a
    worker dies; an error in a worker is raised here.
    """
    workers = processes(len(stated))
    if workers > 1:
        yield from _in_workers(workers, targets, [obligation.statement for obligation in stated], progress, reviews)
        return
    for number, obligation in enumerate(stated, 1):
        judgement = judge(obligation, *reviews)
        progress(number)
        yield judgement


def processes(number: int) -> int:
    """How many processes judge so many obligations; with one, it is this process."""
    return min(number, os.cpu_count() or 1)


def _in_workers(
    workers: int,
    targets: tuple[str, ...],
    statements: list[Statement],
    progress: Callable[[int], None],
    reviews: tuple[Review, ...],
) -> Iterator[Judgement]:
    # spawn, on every platform: nothing promises that a forked copy of the solver's state and threads works
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        asked = {k: pool.submit(_judgement, targets, k, reviews) for k in longest_first(statements)}
        given = 0
        for number, future in enumerate(as_completed(asked.values()), 1):
            future.result()  # an error anywhere ends the run at once
            progress(number)
            while given < len(statements) and asked[given].done():
                judgement = asked[given].result()
                if judgement.statement != statements[given]:
                    raise RunnerError(f"a worker found another obligation in place of {statements[given].name}: did a file change?")
                yield judgement
                given += 1
    except BrokenProcessPool as death:
        raise RunnerError("a process that judges obligations died: killed, out of memory, or ended by a scheme's file") from death
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def longest_first(statements: Sequence[Statement]) -> list[int]:
    """The order in which to begin, so that no long one is left to the end: results first, and later entries, which are larger."""
    return sorted(range(len(statements)), key=lambda k: (statements[k].theorem != T3.name, -k))


@cache
def _stated(targets: tuple[str, ...]) -> tuple[Obligation, ...]:
    """A worker states them once."""
    return obligations(targets)


def _judgement(targets: tuple[str, ...], k: int, reviews: tuple[Review, ...]) -> Judgement:
    return judge(_stated(targets)[k], *reviews)
