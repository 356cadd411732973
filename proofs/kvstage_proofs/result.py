"""T3, the result: each row arrives at its place from its source, and nothing else changes.

The proof follows a row backwards. Whoever reads a cell of a staging buffer or of the result must have a *witness*: an
operation that wrote this cell, had ended before, and itself took the row from the right place; and any other writer of
the cell must have ended before the witness began, or begin after the reader has ended. Witnesses are looked for in the
reader's own step, and in the step that the scheme names for a row of the result: names are hints, never trusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import z3

from kvstage_model.model import Instance, SchemeModel
from kvstage_model.operations import Access, Rows, reads, writes
from kvstage_model.parameters import SchemeFunction
from kvstage_model.scheme import CALLER, LOOP, Direction, Result, Scheme
from kvstage_model.search import search, wrong_rows
from kvstage_model.symbolic import Term, UnsupportedError
from kvstage_model.window import Window

from .chain import Chain
from .obligation import Theorem
from .query import Query

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
        chain = Chain(window, self.source, self.position)
        witnesses = self.witnesses(window, [reader], reach)
        comes = chain.comes(self.promise.target, reader, witnesses, lambda cell: chain.is_cell(cell, self.promise.source))
        wider = partial(self._arrives, reach + 1) if reach < REACH else None
        name = "row p of the result comes from its source"
        return Query(name, window.facts(), reader.exists, z3.Not(comes), self.world.hint, must_hold=True, wider=wider)

    def _reader(self, window: Window) -> Instance:
        """What the caller does with row p of the result."""
        caller = window.add("caller", self.call, self.caller, self.position)
        return next(i for i in caller if any(access.buffer.name == self.target for access in reads(i.operation)))

    def witnesses(self, window: Window, readers: list[Instance], reach: int) -> list[Instance]:
        """Where witnesses are looked for: the readers' own steps and what their waits aim at, or the step that is named."""
        near = list(readers)
        if readers[0].site.phase == self.caller:
            near = window.add("by", self.call, self.loop, self.promise.step)
        near += window.widen(near, max(reach, 1))
        window.add_single_phases(self.call)
        return near

    def stays(self) -> Iterator[Query]:
        """What a reader finds in a cell is what its witness wrote: no other writer comes between them."""
        for reader_phase, writer_phase in product(range(len(self.model.phases)), repeat=2):
            for order in ORDERS:
                between = _Between(self, reader_phase, writer_phase, order)
                yield from between.queries()

    def untouched(self) -> Iterator[Query]:
        """The scheme writes the pool only at the rows of the transfer (write), or not at all (read)."""
        pool = self.source if self.direction is Direction.READ else self.target
        for number in range(len(self.model.phases)):
            window = Window(self.model)
            writers = window.add("j", self.call, number, self.world.integer("j")) if number != self.caller else []
            for writer in writers:
                for target in writes(writer.operation):
                    if target.buffer.name == pool:
                        yield self._framed(window, writer, target, writers)

    def _framed(self, window: Window, writer: Instance, target: Access, writers: list[Instance]) -> Query:
        chain = Chain(window, self.source, self.position)
        cell, row, reached = chain.some_cell(target, "row")

        def arrived(taken: Rows) -> Term:
            promise = self.promised(self.call, taken.start)
            position, length = self.world.term(taken.start), self.world.term(promise.length)
            at_home = z3.And(chain.is_cell(taken, promise.source), chain.is_cell(cell, promise.target))
            return z3.And(position >= 0, position < length, at_home)

        in_place = z3.BoolVal(False, self.world.context)
        if self.direction is Direction.WRITE and reads(writer.operation):
            witnesses = [*writers, *window.widen(writers, 1)]
            in_place = chain.origin(row, writer, witnesses, arrived)
        name = f"{self.word(writer)}[j] writes only rows of the transfer, each at its address"
        return Query(name, window.facts(), z3.And(writer.exists, reached), z3.Not(in_place), self.world.hint)

    def word(self, instance: Instance) -> str:
        """An operation in words."""
        return f"{type(instance.operation).__name__} of {self.model.names[instance.site.phase]}"


class _Between:
    """A reader and another writer of its cell: the writer must not come between the reader and its witness."""

    def __init__(self, result: ResultModel, reader_phase: int, writer_phase: int, order: str) -> None:
        self.result, self.world, self.order = result, result.world, order
        self.reader_phase, self.writer_phase = reader_phase, writer_phase
        self._opened: dict[int, tuple[Window, list[Instance], list[Instance], list[Instance]]] = {}

    def queries(self) -> Iterator[Query]:
        _, readers, writers, _ = self._open(0)
        for r, w in product(range(len(readers)), range(len(writers))):
            for k, access in enumerate(reads(readers[r].operation)):
                if any(target.buffer.name == access.buffer.name for target in writes(writers[w].operation)):
                    yield self._query(r, k, w, 0)

    def _open(self, reach: int) -> tuple[Window, list[Instance], list[Instance], list[Instance]]:
        """The window, its readers, its writers, and where their witnesses are looked for."""
        if reach not in self._opened:
            self._opened[reach] = self._window(reach)
        return self._opened[reach]

    def _window(self, reach: int) -> tuple[Window, list[Instance], list[Instance], list[Instance]]:
        window, result = Window(self.result.model), self.result
        other_call = result.call if self.order == "same" else self.world.integer("other call")
        step = result.position if self.reader_phase == result.caller else self.world.integer("i")
        readers = window.add("i", result.call, self.reader_phase, step)
        if not any(reads(reader.operation) for reader in readers):
            return window, [], [], []
        writers = window.add("j", other_call, self.writer_phase, self.world.integer("j"))
        witnesses = result.witnesses(window, readers, reach)
        if reach:
            window.widen(writers, reach)
        window.add_single_phases(other_call)
        return window, readers, writers, witnesses

    def _query(self, r: int, k: int, w: int, reach: int) -> Query:
        window, readers, writers, witnesses = self._open(reach)
        reader, writer = readers[r], writers[w]
        access = reads(reader.operation)[k]
        chain = Chain(window, self.result.source, self.result.position)
        cell, _, reached = chain.some_cell(access, "x")
        touched = [chain.touches(target, cell) for target in writes(writer.operation) if target.buffer.name == cell.buffer.name]
        calls = {"same": writer.call == reader.call, "earlier": writer.call < reader.call, "later": reader.call < writer.call}
        met = z3.And(reader.exists, writer.exists, calls[self.order], z3.Not(window.same(reader, writer)), reached, z3.Or(touched))
        if cell.buffer.name == self.result.source:
            apart = writer.end <= reader.begin if self.order == "earlier" else reader.end <= writer.begin
        else:
            apart = self._witnessed(window, chain, cell, reader, writer, witnesses)
        name = f"{self.result.word(reader)}[i] reads {cell.buffer.name}, {self.result.word(writer)}[j] of the {self.order} call"
        wider = partial(self._query, r, k, w, reach + 1) if reach < REACH else None
        return Query(f"{name} does not come between", window.facts(), met, z3.Not(apart), self.world.hint, wider=wider)

    def _witnessed(
        self, window: Window, chain: Chain, cell: Rows, reader: Instance, writer: Instance, witnesses: list[Instance]
    ) -> Term:
        """That the reader has a witness for the cell with which the writer does not interfere."""
        cases = [z3.BoolVal(False, self.world.context)]
        for witness, _, covers in chain.writers_of(cell, witnesses):
            if witness is not reader:
                clear = z3.Or(window.same(witness, writer), writer.end <= witness.begin, reader.end <= writer.begin)
                cases.append(z3.And(witness.exists, covers, witness.end <= reader.begin, clear))
        return z3.Or(cases)


def queries(function: SchemeFunction) -> Iterator[Query]:
    """That every row arrives, that it stays what it was until it is read, and that nothing else is written."""
    result = ResultModel(function)
    yield from result.arrives()
    yield from result.stays()
    yield from result.untouched()


T3 = Theorem[SchemeFunction]("T3", "the result", CLAIM, queries, lambda function: search(function, wrong_rows))
