"""The queries as SMT-LIB files, for any solver: `kvstage prove --smt2 DIR`."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import z3

from ..obligation import Judgement
from ..solvers.query import Answer, Asked, Query

SUFFIX = ".smt2"
LONGEST = 100
"""Characters of the readable part of a file's name."""


@dataclass(frozen=True)
class Folder:
    """A review that writes the queries of each judgement into a folder, which must exist; it changes no judgement."""

    path: Path

    def __call__(self, judgement: Judgement, queries: Sequence[Query]) -> Judgement:
        """Writes two files for each query: whether its premise can hold, and whether its doubt can."""
        for number, (query, asked) in enumerate(zip(queries, judgement.asked, strict=True), 1):
            for question, expected, text in _questions(query, asked):
                name = f"{file_name(judgement.statement.name)}-{number:03}-{question}{SUFFIX}"
                head = _head(judgement, query, question, expected)
                status = text.replace("(set-info :status unknown)", f"(set-info :status {expected.value})", 1)
                (self.path / name).write_text(f"{head}\n{status}", encoding="utf-8")
        return judgement


def _questions(query: Query, asked: Asked) -> Iterator[tuple[str, Answer, str]]:
    """What is asked of a query, the answer to expect (z3's), and the text. Without its premise a doubt can't hold either."""
    yield "premise", asked.can_hold, query.premise_smt2()
    yield "doubt", Answer.UNSAT if asked.can_hold is Answer.UNSAT else asked.answer, query.smt2()


def _head(judgement: Judgement, query: Query, question: str, expected: Answer) -> str:
    lines = {
        "obligation": f"{judgement.statement.name}, must be {judgement.statement.expected.value}",
        "claim": judgement.statement.claim,
        "query": query.name,
        "asked": "can the premise hold?" if question == "premise" else "can the doubt hold? unsat proves",
        "expected": f"{expected.value}, as z3 {z3.get_version_string()} says",
    }
    return "\n".join(f"; {key}: {' '.join(words.split())}" for key, words in lines.items())


def file_name(name: str) -> str:
    """A name that every file system takes; different names give different ones."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")[:LONGEST]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
