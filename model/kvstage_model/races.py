"""The race finder: the axioms, read with ints, over one program that the host has issued.

The edges of the axioms and of the operations' own moments form a graph; two accesses may overlap exactly where neither
one's end reaches the other one's begin. (The moments are difference constraints: they have a solution in which both
overlap unless a cycle forbids it, and any such cycle contains one of these two paths.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import product

from .axioms import Moment, edges, not_yet, own
from .buffers import Access, overlap, parts
from .operations import Operation, QueryEvent, reads, writes
from .trace import Issued, Trace, TraceEvent

MOMENTS = tuple(Moment)


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
    """Which moments of a program's operations are ordered, by the axioms."""

    def __init__(self, program: Sequence[Issued]) -> None:
        self.program = tuple(program)
        self._after: list[set[int]] = [set() for _ in range(len(MOMENTS) * len(self.program))]
        for index, issued in enumerate(self.program):
            for rule in own(issued.operation):
                self._after[node(index, rule.earlier)].add(node(index, rule.later))
        self._refused: list[tuple[int, int]] = []
        for second in range(len(self.program)):
            self._add_edges_to(second)
        self._reached = self._closure()
        self.possible = self._refuse()

    def _refuse(self) -> bool:
        """Let queries that said "not yet" begin before their records ended; whether all of them may have said so."""
        for record, query in self._refused:
            if self.ordered(record, Moment.END, query, Moment.BEGIN):
                return False
            self._after[node(query, Moment.BEGIN)].add(node(record, Moment.END))
            self._reached = self._closure()
        recorded = {query for _, query in self._refused}
        never = (n for n, issued in enumerate(self.program) if isinstance(issued.operation, QueryEvent) and n not in recorded)
        return all(_said_yes(self.program[query].operation) for query in never)

    def _add_edges_to(self, second: int) -> None:
        captured = False
        for first in reversed(range(second)):
            if not captured and not_yet(self.program[first].operation, self.program[second].operation):
                self._refused.append((first, second))
                captured = True
            for edge in edges(self.program[first].operation, self.program[second].operation):
                if edge.when and not (edge.last_record and captured):
                    self._after[node(first, edge.earlier)].add(node(second, edge.later))
                    captured |= edge.last_record

    def _closure(self) -> list[int]:
        """For each moment the set, as bits, of those that can't come before it."""
        reached = [1 << moment for moment in range(len(self._after))]
        changed = True
        while changed:  # once is enough but for the host's issue <-> begin
            changed = False
            for moment in reversed(range(len(self._after))):
                bits = reached[moment]
                for later in self._after[moment]:
                    bits |= reached[later]
                changed |= bits != reached[moment]
                reached[moment] = bits
        return reached

    def ordered(self, first: int, earlier: Moment, second: int, later: Moment) -> bool:
        """Whether a moment of operation `first` never comes after one of operation `second`."""
        return bool(self._reached[node(first, earlier)] >> node(second, later) & 1)

    def apart(self, first: int, second: int) -> bool:
        """Whether one of the two has always ended when the other one begins."""
        return self.ordered(first, Moment.END, second, Moment.BEGIN) or self.ordered(second, Moment.END, first, Moment.BEGIN)

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


def node(index: int, moment: Moment) -> int:
    """The number of a moment in the graph."""
    return len(MOMENTS) * index + MOMENTS.index(moment)


def _in_issue_order(follows: dict[int, set[int]]) -> list[int]:
    """A topological order that, where it may choose, takes what was issued first."""
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
    for second in range(len(order.program)):
        for first in reversed(range(second)):
            accesses = conflicts(order.program[first].operation, order.program[second].operation)
            if not order.apart(first, second) and any(_meet(mine, other) for mine, other in accesses):
                yield Race(first, second)


def _meet(first: Access, second: Access) -> bool:
    return any(overlap(mine, other) for mine, other in product(parts(first), parts(second)))
