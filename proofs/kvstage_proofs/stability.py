"""Stability: a verdict must not hang on the order of the facts, on the names of the symbols, or on the solver's luck.

A copy of a query asks the same in another order, under other names and with other seeds. Where a copy is answered
otherwise, the verdict is luck: the next change of the scheme, or the next version of the solver, may lose it.
"""

import random
import re
from collections.abc import Iterator

import z3

from kvstage_model.symbolic import Term

from .query import Answer, Query, check

DECLARED = re.compile(r"\(declare-fun (\|[^|]*\||[^\s()]+) ")
SYMBOL = re.compile(r"\|[^|]*\||[^\s()]+")


def copies(query: Query, number: int) -> Iterator[str]:
    """So many shuffled and renamed copies of a query's question, as SMT-LIB text. The same ones in each run."""
    for copy in range(number):
        chance = random.Random(f"{query.name} {copy}")
        parts = [*query.facts, query.premise, query.doubt]
        chance.shuffle(parts)
        yield renamed(_text(parts), chance)


def renamed(text: str, chance: random.Random) -> str:
    """SMT-LIB text with all that it declares under other names, handed out by chance."""
    declared = DECLARED.findall(text)
    names = [f"s{number}" for number in range(len(declared))]
    chance.shuffle(names)
    new = dict(zip(declared, names, strict=True))
    return SYMBOL.sub(lambda found: new.get(found[0], found[0]), text)


def answers(query: Query, number: int) -> list[Answer]:
    """z3's answers to so many copies of a query's question, each with seeds of its own, within the budget of a question."""
    return [_answer(text, seed) for seed, text in enumerate(copies(query, number))]


def _text(parts: list[Term]) -> str:
    solver = z3.Solver(ctx=parts[-1].ctx)
    solver.add(*parts)
    return str(solver.to_smt2())


def _answer(text: str, seed: int) -> Answer:
    read = z3.Solver(ctx=z3.Context())
    read.from_string(text)
    return check(list(read.assertions()), seed)[0]
