"""`kvstage explain`: one obligation in full: what is claimed and assumed, what was asked, and what came of it.

If a claim is broken it draws the schedule, says which order is missing, and which waits would supply it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from kvstage_model.language.contract import contract, distinct
from kvstage_model.language.paged_rows import PagedRows, PairedRows
from kvstage_model.language.parameters import Parameter, ParameterError, declared
from kvstage_model.language.partitions import Piece, Pieces, Runs, by_chunk, by_row
from kvstage_model.language.ranges import Flags
from kvstage_model.ordering import missing_waits
from kvstage_model.ordering.axioms import AXIOMS, edges, own
from kvstage_model.schemes.loop import Loop
from kvstage_model.search.search import Counterexample
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.traces.text import timeline

from ..judging.judge import judge
from ..obligation import Judgement, Obligation
from ..solvers.query import Query
from ..theorems.t1_no_hazard import T1
from ..theorems.t2_single_row import T2
from ..theorems.t3_result import T3
from ..theorems.t6_no_deadlock import T6
from .console import counted

WIDTH = 118
INDENT = "  "
ABOUT_TIME = (T1.name, T2.name, T3.name, T6.name)
"""The theorems that speak of an order in time, and so rest on the axioms."""
TRANSFER = PagedRows(lambda block: block, 1, 1, 0, 1)
"""Some transfer: the contract's clauses have the same names for every one."""
MOMENT = re.compile(r"^\(declare-fun \|?[^|()]*\.end\|? \(\) Int\)$", re.MULTILINE)
"""The declaration of the moment at which an operation of a window has ended."""


def explained(obligation: Obligation) -> tuple[Judgement, tuple[str, ...]]:
    """Judges an obligation, and all that there is to say of it, as lines."""
    size = _Size()
    judgement = judge(obligation, size)
    statement = judgement.statement
    expected = "as expected" if judgement.ok else f"expected {statement.expected.value}"
    lines = [f"{statement.name}  {statement.title}: {judgement.verdict.value}, {expected}"]
    lines += _section("claim", _wrapped(statement.claim))
    lines += _section("for", [line for parameter in _parameters(obligation) for line in _range(parameter)])
    lines += _section("assumed", [f"{name}  {AXIOMS[name]}" for name in axioms(obligation)])
    lines += _section("asked", [size.words(judgement)])
    lines += _section("why", _wrapped(judgement.reason))
    if judgement.counterexample is not None:
        lines += _broken(judgement.counterexample)
    return judgement, tuple(lines)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(f"{INDENT}{line}" for line in lines)] if lines else []


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH - len(INDENT), subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)


def _parameters(obligation: Obligation) -> tuple[Parameter, ...]:
    """What the subject declares; lemmas declare nothing."""
    subject = obligation.subject.scheme if isinstance(obligation.subject, Loop) else obligation.subject
    if not callable(subject):
        return ()
    try:
        return declared(subject)
    except ParameterError:
        return ()


def _range(parameter: Parameter) -> Iterator[str]:
    """Which values of a parameter the claim is about."""
    if parameter.kind is int:
        yield f"{parameter.name}: every number from {parameter.least} on, one for each call; one for all where it sizes a buffer"
        return
    if parameter.kind is Flags:
        yield f"{parameter.name}: every answer, yes or not yet, to the query of every step, in every call anew"
        return
    twice = "no block twice in the table" if parameter.distinct else "a block may be in the table more than once"
    if parameter.kind is PagedRows:
        yield f"{parameter.name}: rows start..stop - 1 of a sequence, of every length and history, in blocks of every size;"
        yield f"{INDENT}every block table that names blocks of the pool; {twice}"
        return
    if issubclass(parameter.kind, PairedRows):
        yield f"{parameter.name}: rows start..stop - 1 of a sequence, of every length and history, in blocks of every size in one"
        yield f"{INDENT}pool, and in blocks larger by every whole factor, or as large, in another; every two block tables that"
        yield f"{INDENT}name blocks of their pools; {twice} of the pool that is written"
        return
    runs = parameter.kind is Runs
    shown, proved = ("runs, each in one block,", "by_row and by_block do") if runs else ("pieces", "by_chunk does")
    yield f"{parameter.name}: every transfer, cut into {shown} in any way that fulfils the contract, as {proved} (P1);"
    yield f"{INDENT}{twice}; the contract:"
    parts: Pieces[Piece] = by_row(TRANSFER) if runs else by_chunk(TRANSFER, 1)
    clauses = [*contract(parts, 0, 0, 0), *(distinct(parts, 0, 0, 0, 0) if parameter.distinct else ())]
    yield from (f"{INDENT}- {clause.name}" for clause in clauses)


def axioms(obligation: Obligation) -> tuple[str, ...]:
    """The names of the axioms that say something of some two operations of the scheme; none if times play no part."""
    if obligation.statement.theorem not in ABOUT_TIME or not callable(obligation.subject):
        return ()
    try:
        operations = [instance.operation for instance in _instances(SchemeModel(obligation.subject))]
    except (UnsupportedError, ParameterError):
        return ()  # the verdict says why
    said = {rule.axiom for operation in operations for rule in own(operation)}
    pairs = ((first, second) for first in operations for second in operations)
    said |= {edge.axiom for first, second in pairs for edge in edges(first, second) if edge.when is not False}
    return tuple(sorted(said))


def _instances(model: SchemeModel) -> Iterator[Instance]:
    call, step = model.world.integer("call"), model.world.integer("i")
    for number in range(len(model.phases)):
        yield from model.instances("any", call, number, step)


@dataclass
class _Size:
    """A review that keeps the sizes of the queries and changes no judgement: assertions, and operations with times."""

    sizes: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, judgement: Judgement, queries: Sequence[Query]) -> Judgement:
        self.sizes += [(len(set(MOMENT.findall(query.smt2()))), len(query.facts) + 2) for query in queries]
        return judgement

    def words(self, judgement: Judgement) -> str:
        """How many queries there were, how large, and the time."""
        seconds = f"{judgement.seconds:.1f} s, the search of small instances included"
        if not self.sizes:
            return f"no query: {seconds}"
        operations, assertions = max(self.sizes)
        window = f"{counted(operations, 'operation', 'operations')} in its window, " if operations else ""
        largest = f"the largest has {window}{counted(assertions, 'assertion', 'assertions')}"
        return f"{counted(len(self.sizes), 'query', 'queries')}, {seconds}; {largest}"


def _broken(found: Counterexample) -> Iterator[str]:
    """The instance, its schedule as a picture, what is wrong, and what would put the two accesses in order."""
    yield from _section("broken by", [found.values])
    if found.trace.events:
        yield from _section("schedule", list(timeline(found.trace, found.race)))
    yield from _section("wrong", _wrapped(found.wrong))
    if found.race is not None:
        missing, where, *waits = missing_waits.lines(found.trace.program, found.race)
        yield from _section("missing", [*_wrapped(missing), *_wrapped(where), *waits])
