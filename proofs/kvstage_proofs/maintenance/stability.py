"""Stability: a verdict must not hang on the order of the facts, on the names of the symbols, or on the solver's luck.

A copy of a query asks the same in another order, under other names and with other seeds. If a copy is answered
otherwise, the verdict is luck: the next change of the scheme, or the next version of the solver, may lose it.
"""

import random
import re
from collections.abc import Iterator

import z3

from kvstage_model.symbolic.z3_terms import Term, assert_fast

from ..solvers.query import Answer, Query
from ..solvers.z3_solver import answered

DECLARED = re.compile(r"\(declare-fun (\|[^|]*\||[^\s()]+) ")
SYMBOL = re.compile(r"(\|[^|]*\||[^\s()]+)")
COMMAND = re.compile(r"^\((?:declare-fun|assert)\b.*?(?=^\((?:declare-fun|assert|check-sat)\b)", re.MULTILINE | re.DOTALL)
"""A declaration or an assertion: z3 begins each on a line of its own, and writes (check-sat) after the last."""


def copies(query: Query, number: int) -> Iterator[str]:
    """So many shuffled and renamed copies of a query's question, as SMT-LIB text. The same ones in each run."""
    commands = COMMAND.findall(_text([*query.facts, query.premise, query.negated_goal]))
    declared = [name for command in commands for name in DECLARED.findall(command)]
    cut = [_cut(command, frozenset(declared)) for command in commands]
    count = len(declared)  # each in a command of its own, before all assertions
    for copy in range(number):
        chance = random.Random(f"{query.name} {copy}")
        order = [*chance.sample(range(count), count), *chance.sample(range(count, len(cut)), len(cut) - count)]
        new = _names(declared, chance)
        yield "".join(new.get(part, part) for each in order for part in cut[each])


def _cut(command: str, declared: frozenset[str]) -> list[str]:
    """A command in parts, so that a name that is declared is a part of its own. Done once, for it takes longest."""
    parts = [""]
    for part in SYMBOL.split(command):
        if part in declared:
            parts += [part, ""]
        else:
            parts[-1] += part
    return parts


def renamed(text: str, chance: random.Random) -> str:
    """SMT-LIB text with all that it declares under other names, handed out by chance."""
    new = _names(DECLARED.findall(text), chance)
    return "".join(new.get(part, part) for part in SYMBOL.split(text))


def _names(declared: list[str], chance: random.Random) -> dict[str, str]:
    names = [f"s{number}" for number in range(len(declared))]
    chance.shuffle(names)
    return dict(zip(declared, names, strict=True))


def answers(query: Query, number: int) -> list[Answer]:
    """z3's answers to so many copies of a query's question, each with seeds of its own, within the budget of a question."""
    return [_answer(text, seed) for seed, text in enumerate(copies(query, number))]


def _text(parts: list[Term]) -> str:
    solver = z3.Solver(ctx=parts[-1].ctx)
    assert_fast(solver, parts)
    return str(solver.to_smt2())


def _answer(text: str, seed: int) -> Answer:
    copy = z3.Solver(ctx=z3.Context())
    copy.from_string(text)
    return answered(copy, seed)[0]
