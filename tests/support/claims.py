"""Obligations whose verdict is plain to see, and users' files, for the tests of the command line."""

from collections.abc import Iterator
from pathlib import Path

import z3

from kvstage_model.ordering.trace import Trace
from kvstage_model.search.search import Counterexample
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_proofs.obligation import Judgement, Obligation, Statement, Theorem, Verdict
from kvstage_proofs.solvers.query import Query

PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
BROKEN = Counterexample("n = 1, 1 call", 3, Trace((), ()), "it is not so")


def _queries(verdict: Verdict) -> Iterator[Query]:
    context = z3.Context()
    true, false = z3.BoolVal(True, context), z3.BoolVal(False, context)
    if verdict is UNSUPPORTED:
        raise UnsupportedError("an index can't do that: do this instead")
    if verdict is not VACUOUS:
        yield Query("a doubt", [], true, false if verdict is PROVED else true, hint=true)


PLAIN = Theorem[Verdict]("T0", "a plain claim", "It is so.", _queries, lambda verdict, most: BROKEN if verdict is REFUTED else None)


def claim(verdict: Verdict, expected: Verdict = PROVED) -> Obligation:
    """An obligation that gets this verdict: its only doubt is `false` or `true`."""
    return PLAIN.of(verdict, f"gets {verdict.value}", expected=expected)


def judgement(verdict: Verdict, expected: Verdict = PROVED) -> Judgement:
    """The judgement alone, with nothing behind it."""
    return Judgement(Statement("loop", "read", "T0", "It is so.", expected, "a plain claim"), verdict, 0.25)


HEAD = """\
from typing import Annotated, Any

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostCopy, SyncStream
from kvstage_model.language.parameters import AtLeast
from kvstage_model.language.partitions import Runs
from kvstage_model.language.scheme import Direction, Result, Scheme


def read(runs: Runs) -> Scheme:
    pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
    stage = Buffer("stage", Memory.PINNED, 1, runs.longest)
    out = Buffer("out", Memory.PAGEABLE, 1, runs.length)

    def step(i):
        run = runs.part(i)
        yield Copy("copy", pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
        yield SyncStream("copy")
        yield HostCopy(stage.at(0, 0, run.count), out.at(0, run.position, run.count))

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("mine", (pool, stage, out), runs.number, step, result=result)
"""
"""A user's file with one scheme, which is right."""

WAIT = '        yield SyncStream("copy")\n'


def user_file(folder: Path, text: str, name: str = "mine.py") -> Path:
    """Writes a user's file."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def with_scheme(lines: str) -> str:
    """The right file with one more scheme function behind it, from line `FIRST` on."""
    return f"{HEAD}\n\n{lines}\n"


FIRST = HEAD.count("\n") + 3
"""The line where `with_scheme` puts its first line."""
