"""Two accesses without an order: what the axioms leave open in a program that was issued."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import product

from ..language.buffers import Access, overlap, parts
from ..language.operations import (
    Operation,
    QueryEvent,
    reads,
    writes,
)
from .axioms import Moment, edges, nearest, not_yet, own
from .program import Issued
from .touched_rows import Link, TouchedRows
from .trace import Trace, TraceEvent

MOMENTS = tuple(Moment)
NUMBERS = {moment: number for number, moment in enumerate(MOMENTS)}
NEVER = 1 << 62
"""A place that nothing on an agent's line has."""


def conflicts(first: Operation, second: Operation) -> Iterator[tuple[Access, Access]]:
    """The accesses of two operations, at least one a write, that may touch a common row."""
    for mine in writes(first):
        for other in (*reads(second), *writes(second)):
            yield mine, other
    for mine in reads(first):
        for other in writes(second):
            yield mine, other


@dataclass(frozen=True, slots=True)
class Race:
    """Operations number `first` < `second` of a program may overlap while they touch a common row."""

    first: int
    second: int


class HappensBefore:
    """Which moments of a program's operations are ordered, by the axioms.

    Moments that come one after the other by an axiom form a line: the host's and all issues (A1), and the begins and ends of each
    stream (A3). So all that can't come before a moment is one number a line: the first place there that it reaches.
    """

    def __init__(self, program: Sequence[Issued]) -> None:
        self.program = tuple(program)
        self._after: list[set[int]] = [set() for _ in range(len(MOMENTS) * len(self.program))]
        for index, issued in enumerate(self.program):
            for rule in own(issued.operation):
                self._after[node(index, rule.earlier)].add(node(index, rule.later))
        self._refused: list[tuple[int, int]] = []
        for second, firsts in enumerate(nearest([issued.operation for issued in self.program])):
            self._add_edges(firsts, second)
        self._places = _places(self._after)
        self._reached = self._closure()
        self.possible = self._refuse()

    def _refuse(self) -> bool:
        """Let queries that said "not yet" begin before their records ended; whether all of them may have said so."""
        for record, query in self._refused:
            if self.ordered(record, Moment.END, query, Moment.BEGIN):
                return False
            earlier, later = node(query, Moment.BEGIN), node(record, Moment.END)
            self._after[earlier].add(later)
            (line, place), more = self._places[earlier], self._reached[later]
            self._reached = [list(map(min, each, more)) if each[line] <= place else each for each in self._reached]
        recorded = {query for _, query in self._refused}
        never = (n for n, issued in enumerate(self.program) if isinstance(issued.operation, QueryEvent) and n not in recorded)
        return all(_said_yes(self.program[query].operation) for query in never)

    def _add_edges(self, firsts: Iterable[int], second: int) -> None:
        mine = self.program[second].operation
        for first in firsts:
            other = self.program[first].operation
            if not_yet(other, mine):
                self._refused.append((first, second))
            for edge in edges(other, mine):
                if edge.when:
                    self._after[node(first, edge.earlier)].add(node(second, edge.later))

    def _closure(self) -> list[list[int]]:
        """For each moment and each line the first place that can't come before it.

        Later moments first, once: but for the host's begin, which is one place with its issue, all edges lead to later numbers.
        """
        lines = 1 + max((line for line, _ in self._places), default=0)
        reached = [[NEVER] * lines for _ in self._after]
        for moment in reversed(range(len(self._after))):
            line, place = self._places[moment]
            mine = reached[moment]
            mine[line] = place
            for later in self._after[moment]:
                if later > moment:
                    mine = list(map(min, mine, reached[later]))
            reached[moment] = mine
        return reached

    def ordered(self, first: int, earlier: Moment, second: int, later: Moment) -> bool:
        """Whether a moment of operation `first` never comes after one of operation `second`."""
        line, place = self._places[node(second, later)]
        return self._reached[node(first, earlier)][line] <= place

    def apart(self, first: int, second: int) -> bool:
        """Whether one of the two has always ended when the other one begins."""
        return self.ordered(first, Moment.END, second, Moment.BEGIN) or self.ordered(second, Moment.END, first, Moment.BEGIN)

    def line(self, index: int) -> int:
        """The line on which an operation begins and ends: of two there, one has always ended when the other one begins."""
        return self._places[node(index, Moment.BEGIN)][0]

    def too_early(self, happened: Sequence[tuple[int, Moment]]) -> int | None:
        """The first place in an order of moments where one comes before another one that must come first."""
        moments = [node(index, moment) for index, moment in happened]
        seen = set(moments)
        begins_and_ends = (node(index, m) for index in range(len(self.program)) for m in (Moment.BEGIN, Moment.END))
        later = [NEVER] * (1 + max((line for line, _ in self._places), default=0))  # what may not come before one still to come
        first = None
        for missing in (moment for moment in begins_and_ends if moment not in seen):
            later = list(map(min, later, self._reached[missing]))
        for at in reversed(range(len(moments))):
            line, place = self._places[moments[at]]
            if later[line] <= place:
                first = at
            later = list(map(min, later, self._reached[moments[at]]))
        return first

    def schedule(self, race: Race) -> Trace:
        """A shortest-lead order of all moments in which the two accesses of a race overlap."""
        merged = {node(index, Moment.ISSUE): node(index, self._begins(index)) for index in range(len(self.program))}
        follows: dict[int, set[int]] = {merged.get(moment, moment): set() for moment in range(len(self._after))}
        for earlier, laters in enumerate(self._after):
            for later in laters:
                a, b = merged.get(earlier, earlier), merged.get(later, later)
                if a != b:
                    follows[b].add(a)
        for a, b in ((race.first, race.second), (race.second, race.first)):
            follows[node(b, Moment.END)].add(node(a, Moment.BEGIN))
        order = _in_issue_order(follows)
        moments = (divmod(moment, len(MOMENTS)) for moment in order)
        return Trace(self.program, tuple(TraceEvent(index, MOMENTS[m]) for index, m in moments if MOMENTS[m] is not Moment.ISSUE))

    def _begins(self, index: int) -> Moment:
        """The host's issue is its begin; a stream's is a moment of its own."""
        at_once = self.ordered(index, Moment.BEGIN, index, Moment.ISSUE)
        return Moment.BEGIN if at_once else Moment.ISSUE


def _places(after: Sequence[set[int]]) -> list[tuple[int, int]]:
    """For each moment its line, and its place there: each comes right after one that an edge leads from, or begins a line.

    An end comes after its own begin, a stream's begin after an end, and the host's begin is its issue.
    """
    before: list[list[int]] = [[] for _ in after]
    for earlier, laters in enumerate(after):
        for later in laters:
            before[later].append(earlier)
    found: list[tuple[int, int]] = []
    last: list[int] = []
    for moment, earlier_ones in enumerate(before):
        issue = moment - moment % len(MOMENTS)
        which = MOMENTS[moment - issue]
        if which is Moment.BEGIN and issue in after[moment] and moment in after[issue]:
            found.append(found[issue])
            last[found[issue][0]] = moment
            continue
        line = len(last)
        for earlier in earlier_ones:
            if earlier < moment and last[found[earlier][0]] == earlier and (earlier >= issue) == (which is Moment.END):
                line = found[earlier][0]
        if line == len(last):
            last.append(moment)
        last[line] = moment
        found.append((line, moment))
    return found


def node(index: int, moment: Moment) -> int:
    """The number of a moment in the graph."""
    return len(MOMENTS) * index + NUMBERS[moment]


def _in_issue_order(follows: dict[int, set[int]]) -> list[int]:
    """A topological order that, when it may choose, takes what was issued first."""
    sorter = TopologicalSorter(follows)
    sorter.prepare()
    ready: set[int] = set()
    order: list[int] = []
    while sorter.is_active():
        ready.update(sorter.get_ready())
        chosen = min(ready)
        ready.remove(chosen)
        order.append(chosen)
        sorter.done(chosen)
    return order


def _said_yes(operation: Operation) -> bool:
    return isinstance(operation, QueryEvent) and operation.answer != 0


def races(program: Sequence[Issued]) -> Iterator[Race]:
    """All pairs of conflicting accesses that no axiom keeps apart, by the later operation, nearest pairs first."""
    order = HappensBefore(program)
    if not order.possible:  # some query can't have answered as it did: there is no such run
        return
    touched = TouchedRows()
    for second, issued in enumerate(order.program):
        mine = [(rows, False) for access in reads(issued.operation) for rows in parts(access)]
        mine += ((rows, True) for access in writes(issued.operation) for rows in parts(access))
        found: set[int] = set()
        for rows, writing in mine:
            for latest in touched.of(rows, writing):
                found.update(_unordered(order, latest, second))
        for first in sorted(found, reverse=True):
            yield Race(first, second)
        for rows, writing in mine:
            touched.add(rows, writing, order.line(second), second)


def _unordered(order: HappensBefore, latest: "Link | None", second: int) -> Iterator[int]:
    """Those of one line's operations that may overlap with `second`: once one has ended before it, so have all earlier ones."""
    while latest is not None:
        first, latest = latest
        if order.ordered(first, Moment.END, second, Moment.BEGIN):
            return
        if not order.ordered(second, Moment.END, first, Moment.BEGIN):
            yield first


def common(operation: Operation, other: Operation) -> tuple[str, Access]:
    """What an operation does with the first rows that it has in common with another one: "writes" or "reads", and which.

    At least one of the two writes them. Raises ValueError if they have none in common.
    """
    for verb, mine in (*(("writes", access) for access in writes(operation)), *(("reads", access) for access in reads(operation))):
        for theirs in (*writes(other), *(reads(other) if verb == "writes" else ())):
            for first, second in product(parts(mine), parts(theirs)):
                if overlap(first, second):
                    return verb, first
    raise ValueError("the two operations have no row in common that either writes")
