"""T3, the result: each row arrives at its place from its source, and nothing else changes.

The proof follows a row backwards. What reads a cell of a staging buffer or of the result must have a *witness*: an
operation that wrote this cell, had ended before, and itself took the row from the right place; and any other writer of
the cell must have ended before the witness began, or begin after the reader has ended. Witnesses are looked for in the
reader's own step, in those that its waits aim at, and in the step that the scheme names for a row of the result: hints,
never trusted.

T3 rests on T7: that one kernel writes no row of the pool twice is a demand on bounds.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import z3

from kvstage_model.language.buffers import Access, Rows
from kvstage_model.language.operations import moves, reads, writes
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import CALLER, LOOP, Direction, Result, Scheme
from kvstage_model.search.faults import wrong_rows
from kvstage_model.search.search import search
from kvstage_model.symbolic.aims import distances_for
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import Instance, SchemeModel
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query
from .t3_provenance import Chain

CLAIM = (
    "Once a call has returned, every row of the transfer lies at its place as it was at its source, all other rows are "
    "untouched, and so is the source: for every length, history, block size and table, any number of calls."
)

ORDERS = ("same", "earlier", "later")
"""How the call of another writer may lie to the reader's."""
REACH = 3
"""How far a window is widened before the search takes over."""


@dataclass(frozen=True, eq=False)
class Promise:
    """What the scheme promises of one symbolic row of one symbolic call."""

    source: Rows
    target: Rows
    step: int
    length: int


def _result(scheme: Scheme) -> Result:
    if scheme.result is None:
        raise UnsupportedError("the scheme states no result, so there is nothing that T3 could hold it to")
    return scheme.result


class ResultModel:
    """A scheme that promises a result, and the queries that hold it to its promise."""

    def __init__(self, function: SchemeFunction) -> None:
        self.model = SchemeModel(function)
        self.world = self.model.world
        self.call = self.world.integer("call")
        self.promise = self.promised(self.call, self.world.integer("p"))
        self.caller, self.loop = self.model.names.index(CALLER), self.model.names.index(LOOP)
        self.position = self.world.integer("p")
        (self.direction,) = self.model.value(self.call, lambda scheme: (_result(scheme).direction,))
        self.source, self.target = self.promise.source.buffer.name, self.promise.target.buffer.name

    def promised(self, call: int, position: int) -> Promise:
        """The promise for a row of a call."""

        def read(scheme: Scheme) -> Promise:
            result = _result(scheme)
            return Promise(result.source(position), result.target(position), result.step(position), result.length)

        return self.model.value(call, read)

    # -- the queries

    def arrives(self) -> Iterator[Query]:
        """Each row that the caller reads was brought there from its source."""
        yield self._arrives(0)

    def _arrives(self, reach: int) -> Query:
        window = Window(self.model)
        reader = self._reader(window)
        chain = self.chain(window)
        comes = chain.comes(self.promise.target, reader, lambda cell: chain.is_cell(cell, self.promise.source))
        self.complete(window, self.call, window.instances, reach)
        strengthened = partial(self._arrives, reach + 1) if reach < REACH else None
        name = "row p of the result comes from its source"
        return Query(name, window.facts(), reader.exists, z3.Not(comes), self.world.hint, must_hold=True, strengthened=strengthened)

    def chain(self, window: Window) -> Chain:
        """The question where rows came from, in a window."""
        return Chain(window, self.source, self.position, self._near)

    def _near(self, window: Window, reader: Instance) -> list[Instance]:
        """The reader's own step and those that its waits aim at; for the caller, the step that the scheme names."""
        world, call, step = self.world, self.world.index(reader.call), self.world.index(reader.step)
        if reader.site.phase == self.caller:
            steps = [self.promise.step if reader.step.eq(world.term(self.position)) else self.promised(call, step).step]
            return window.at(call, self.loop, steps)
        return window.at(call, reader.site.phase, [step, *(step + distance for distance in distances_for(self.model, reader))])

    def complete(self, window: Window, call: int, instances: list[Instance], reach: int) -> None:
        """Put in what may order the instances: what their calls do once, and the steps near them."""
        window.widen(list(instances), reach)
        window.add_single_phases(self.call, call)

    def _reader(self, window: Window) -> Instance:
        """What the caller does with row p of the result."""
        caller = window.add("caller", self.call, self.caller, self.position)
        return next(i for i in caller if any(access.buffer.name == self.target for access in reads(i.operation)))

    def stays(self, but: Collection[str] = ()) -> Iterator[Query]:
        """What a reader finds in a cell is what its witness wrote: no other writer comes between them.

        Asked of all buffers but those that are named.
        """
        for reader_phase, writer_phase in product(range(len(self.model.phases)), repeat=2):
            for order in ORDERS:
                between = _Between(self, reader_phase, writer_phase, order)
                yield from between.queries(but)

    def untouched(self) -> Iterator[Query]:
        """The scheme writes where the rows arrive only rows of the transfer, and nothing at all where they come from."""
        for number in range(len(self.model.phases)):
            window = Window(self.model)
            for writer in window.add("j", self.call, number, self.world.integer("j")) if number != self.caller else []:
                for part, target in enumerate(writes(writer.operation)):
                    if target.buffer.name in (self.source, self.target):
                        yield self._framed(window, writer, part, target)

    def _framed(self, window: Window, writer: Instance, part: int, target: Access) -> Query:
        chain = self.chain(window)
        cell, row, reached = chain.some_cell(target, "row")

        def home(position: int, taken: Rows | None) -> Term:
            promise = self.promised(self.call, position)
            at, length = self.world.term(position), self.world.term(promise.length)
            came = [] if taken is None else [chain.is_cell(taken, promise.source)]
            return z3.And(at >= 0, at < length, chain.is_cell(cell, promise.target), *came)

        in_place = z3.BoolVal(False, self.world.context)
        first = self._first(writer)
        if target.buffer.name == self.target and first is not None:
            in_place = home(first + row, None)
        elif target.buffer.name == self.target and self.direction is Direction.READ:
            in_place = home(cell.start, None)
        elif target.buffer.name == self.target and moves(writer.operation):
            in_place = chain.origin(part, row, writer, lambda taken: home(taken.start, taken))
        self.complete(window, self.call, window.instances, 0)
        name = f"{self.word(writer)}[j] writes only rows of the transfer, each at its address"
        return Query(name, window.facts(), z3.And(writer.exists, reached), z3.Not(in_place), self.world.hint)

    def _first(self, writer: Instance) -> int | None:
        """The first row that the writer's step moves, if the scheme says so: a hint."""
        (stated,) = self.model.value(self.call, lambda scheme: (_result(scheme).first is not None,))
        if not stated:
            return None

        def read(scheme: Scheme) -> int:
            first = _result(scheme).first
            assert first is not None, "stated on every path"
            return first(self.world.index(writer.step))

        return self.model.value(self.call, read)

    def word(self, instance: Instance) -> str:
        """An operation in words."""
        return f"{type(instance.operation).__name__} of {self.model.names[instance.site.phase]}"


class _Between:
    """A reader and another writer of its cell: the writer must not come between the reader and its witness."""

    def __init__(self, result: ResultModel, reader_phase: int, writer_phase: int, order: str) -> None:
        self.result, self.world, self.order = result, result.world, order
        self.reader_phase, self.writer_phase = reader_phase, writer_phase
        self.call = result.call if order == "same" else self.world.integer("other call")
        self._opened: dict[int, tuple[Window, list[Instance], list[Instance]]] = {}

    def queries(self, but: Collection[str]) -> Iterator[Query]:
        """One query for each reader's access and each writer of the same buffer, but of those that are named."""
        window = Window(self.result.model)
        readers, writers = self._two_steps(window)
        for r, w in product(range(len(readers)), range(len(writers))):
            for k, access in enumerate(reads(readers[r].operation)):
                written = {target.buffer.name for target in writes(writers[w].operation)}
                if access.buffer.name in written.difference(but):
                    yield self._query(r, k, w, 0)

    def _two_steps(self, window: Window) -> tuple[list[Instance], list[Instance]]:
        step = self.result.position if self.reader_phase == self.result.caller else self.world.integer("i")
        readers = window.add("i", self.result.call, self.reader_phase, step)
        return readers, window.add("j", self.call, self.writer_phase, self.world.integer("j"))

    def _open(self, reach: int) -> tuple[Window, list[Instance], list[Instance]]:
        if reach not in self._opened:
            window = Window(self.result.model)
            readers, writers = self._two_steps(window)
            self.result.complete(window, self.call, [*readers, *writers], reach)
            self._opened[reach] = window, readers, writers
        return self._opened[reach]

    def _query(self, r: int, k: int, w: int, reach: int) -> Query:
        window, readers, writers = self._open(reach)
        reader, writer = readers[r], writers[w]
        access, chain = reads(reader.operation)[k], self.result.chain(window)
        cell, _, reached = chain.some_cell(access, "x")
        touched = [chain.touches(target, cell) for target in writes(writer.operation) if target.buffer.name == cell.buffer.name]
        calls = {"same": writer.call == reader.call, "earlier": writer.call < reader.call, "later": reader.call < writer.call}
        met = z3.And(reader.exists, writer.exists, calls[self.order], z3.Not(window.same(reader, writer)), reached, z3.Or(touched))
        if cell.buffer.name == self.result.source:
            apart = writer.end <= reader.begin if self.order == "earlier" else reader.end <= writer.begin
        else:
            apart = self._witnessed(window, chain, cell, reader, writer)
        name = f"{self.result.word(reader)}[i] reads {cell.buffer.name}, {self.result.word(writer)}[j] of the {self.order} call"
        strengthened = partial(self._query, r, k, w, reach + 1) if reach < REACH else None
        return Query(
            f"{name} does not come between", window.facts(), met, z3.Not(apart), self.world.hint, strengthened=strengthened
        )

    def _witnessed(self, window: Window, chain: Chain, cell: Rows, reader: Instance, writer: Instance) -> Term:
        """That the reader has its witness for the cell, with which the writer does not interfere."""
        cases = [z3.BoolVal(False, self.world.context)]
        for witness, _, is_witness in chain.witnesses(cell, reader):
            clear = z3.Or(window.same(witness, writer), writer.end <= witness.begin, reader.end <= writer.begin)
            cases.append(z3.And(is_witness, witness.end <= reader.begin, clear))
        return z3.Or(cases)


def queries(function: SchemeFunction) -> Iterator[Query]:
    """That every row arrives, that it stays what it was until it is read, and that nothing else is written."""
    result = ResultModel(function)
    yield from result.arrives()
    yield from result.stays()
    yield from result.untouched()


T3 = Theorem[SchemeFunction]("T3", "the result", CLAIM, queries, lambda function, most: search(function, wrong_rows, most))
