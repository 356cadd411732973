"""T3, the result: each row arrives at its place from its source, and nothing else changes.

The proof follows a row backwards. Whoever reads a cell of a staging buffer or of the result must have a *witness*: an
operation that wrote this cell, had ended before, and itself took the row from the right place; and any other writer of
the cell must have ended before the witness began, or begin after the reader has ended. Witnesses are looked for in the
reader's own step, and in the step that the scheme names for a row of the result: names are hints, never trusted. The
witness is the last operation issued there that writes the cell: one and the same for all queries about the cell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import z3

from kvstage_model.model import Instance, SchemeModel
from kvstage_model.operations import HostRead, Rows, reads, writes
from kvstage_model.parameters import SchemeFunction
from kvstage_model.scheme import Direction, Result, Scheme
from kvstage_model.search import search, wrong_rows
from kvstage_model.symbolic import Term, UnsupportedError
from kvstage_model.window import Window

from .obligation import Theorem
from .query import Query

CLAIM = (
    "Once a call has returned, every row of the transfer lies at its place as it was at its source, all other rows are "
    "untouched, and so is the source: for every length, history, block size and table, any number of calls."
)

LOOP, CALLER = "loop", "caller"
Arrived = Callable[[Rows], Term]


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


class Chain:
    """The question where a cell's row came from, within one window."""

    def __init__(self, window: Window, source: str) -> None:
        self.window, self.world, self.source = window, window.world, source

    def comes(self, cell: Rows, reader: Instance, witnesses: list[Instance], arrived: Arrived) -> Term:
        """That the last witness wrote the cell before the reader began, with a row that satisfies `arrived` at its source."""
        found = [
            z3.And(is_last, witness.end <= reader.begin, self.origin(cell, witness, witnesses, arrived))
            for witness, is_last in self.last(cell, reader, witnesses)
            if reads(witness.operation)
        ]
        return z3.Or([*found, z3.BoolVal(False, self.world.context)])

    def last(self, cell: Rows, reader: Instance, witnesses: list[Instance]) -> Iterator[tuple[Instance, Term]]:
        """Each witness that may have written the cell, and that it did so as the last one issued before the reader."""
        issued = witnesses[: witnesses.index(reader)] if reader in witnesses else witnesses
        none_later = z3.BoolVal(True, self.world.context)
        for witness in reversed(issued):
            for target in writes(witness.operation):
                if target.buffer.name == cell.buffer.name:
                    wrote = z3.And(witness.exists, self.covers(target, cell))
                    yield witness, z3.And(wrote, none_later)
                    none_later = z3.And(none_later, z3.Not(wrote))

    def origin(self, cell: Rows, writer: Instance, witnesses: list[Instance], arrived: Arrived) -> Term:
        """That the row which `writer` puts into the cell satisfies `arrived` at its source."""
        (target,), (source,) = writes(writer.operation), reads(writer.operation)
        taken = source.buffer.at(source.slot, source.start + (cell.start - target.start), 1)
        if taken.buffer.name == self.source:
            return arrived(taken)
        return self.comes(taken, writer, witnesses, arrived)

    def covers(self, rows: Rows, cell: Rows) -> Term:
        """That a cell is one of these rows."""
        return self.window.overlap(rows, cell)

    def is_cell(self, cell: Rows, other: Rows) -> Term:
        """That two cells are one."""
        if cell.buffer.name != other.buffer.name:
            return z3.BoolVal(False, self.world.context)
        term = self.world.term
        return z3.And(term(cell.slot) == term(other.slot), term(cell.start) == term(other.start))


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
        window = Window(self.model)
        (reader,) = (i for i in window.add("caller", self.call, self.caller, self.position) if isinstance(i.operation, HostRead))
        witnesses = window.add("by", self.call, self.loop, self.promise.step)
        window.add_single_phases(self.call)
        chain = Chain(window, self.source)
        comes = chain.comes(self.promise.target, reader, witnesses, lambda cell: chain.is_cell(cell, self.promise.source))
        yield Query("row p of the result comes from its source", window.facts(), reader.exists, z3.Not(comes), must_hold=True)

    def stays(self) -> Iterator[Query]:
        """What a reader finds in a cell is what its witness wrote: no other writer comes between them."""
        for reader_phase in range(len(self.model.phases)):
            for writer_phase in range(len(self.model.phases)):
                for order in ("same", "earlier", "later"):
                    yield from self._between(reader_phase, writer_phase, order)

    def _between(self, reader_phase: int, writer_phase: int, order: str) -> Iterator[Query]:
        world, window = self.world, Window(self.model)
        other_call = self.call if order == "same" else world.integer("other call")
        step = self.position if reader_phase == self.caller else world.integer("i")
        readers = window.add("i", self.call, reader_phase, step)
        witnesses = readers if reader_phase != self.caller else window.add("by", self.call, self.loop, self.promise.step)
        writers = window.add("j", other_call, writer_phase, world.integer("j"))
        window.add_single_phases(self.call, other_call)
        calls = {
            "same": z3.BoolVal(True, world.context),
            "earlier": world.term(other_call) < world.term(self.call),
            "later": world.term(self.call) < world.term(other_call),
        }[order]
        cell_row, chain = world.integer("x"), Chain(window, self.source)
        pairs = [(reader, rows, writer) for reader in readers for rows in reads(reader.operation) for writer in writers]
        pairs = [(reader, rows, writer) for reader, rows, writer in pairs if self._writes(writer, rows.buffer.name)]
        facts = window.facts() if pairs else []
        for reader, rows, writer in pairs:
            cell = rows.buffer.at(rows.slot, cell_row, 1)
            (target,) = writes(writer.operation)
            met = z3.And(reader.exists, writer.exists, calls, z3.Not(window.same(reader, writer)))
            touched = z3.And(chain.covers(rows, cell), chain.covers(target, cell))
            if rows.buffer.name == self.source:
                apart = writer.end <= reader.begin if order == "earlier" else reader.end <= writer.begin
            else:
                apart = self._witnessed(window, chain, cell, reader, writer, witnesses)
            name = f"{self._word(reader)}[i] reads {rows.buffer.name}, {self._word(writer)}[j]"
            yield Query(f"{name} of the {order} call does not come between", facts, z3.And(met, touched), z3.Not(apart))

    def _witnessed(
        self, window: Window, chain: Chain, cell: Rows, reader: Instance, writer: Instance, witnesses: list[Instance]
    ) -> Term:
        """That the reader has its witness for the cell, with which the writer does not interfere."""
        cases = [z3.BoolVal(False, self.world.context)]
        for witness, is_last in chain.last(cell, reader, witnesses):
            clear = z3.Or(window.same(witness, writer), writer.end <= witness.begin, reader.end <= writer.begin)
            cases.append(z3.And(is_last, witness.end <= reader.begin, clear))
        return z3.Or(cases)

    def untouched(self) -> Iterator[Query]:
        """The scheme writes where the rows arrive only rows of the transfer, and nothing at all where they come from."""
        for number in range(len(self.model.phases)):
            if number == self.caller:
                continue
            window = Window(self.model)
            writers = window.add("j", self.call, number, self.world.integer("j"))
            window.add_single_phases(self.call)
            for writer in writers:
                for target in writes(writer.operation):
                    if target.buffer.name in (self.source, self.target):
                        yield self._framed(window, writer, target, writers)

    def _framed(self, window: Window, writer: Instance, target: Rows, witnesses: list[Instance]) -> Query:
        cell = target.buffer.at(target.slot, self.world.integer("x"), 1)
        chain = Chain(window, self.source)

        def arrived(taken: Rows) -> Term:
            promise = self.promised(self.call, taken.start)
            row, length = self.world.term(taken.start), self.world.term(promise.length)
            return z3.And(row >= 0, row < length, chain.is_cell(taken, promise.source), chain.is_cell(cell, promise.target))

        at_its_place = z3.BoolVal(False, self.world.context)
        if target.buffer.name == self.target and self.direction is Direction.READ:
            promise = self.promised(self.call, cell.start)
            row, length = self.world.term(cell.start), self.world.term(promise.length)
            at_its_place = z3.And(row >= 0, row < length, chain.is_cell(cell, promise.target))
        elif target.buffer.name == self.target and reads(writer.operation):
            at_its_place = chain.origin(cell, writer, witnesses, arrived)
        name = f"{self._word(writer)}[j] writes only rows of the transfer, each at its address"
        return Query(name, window.facts(), z3.And(writer.exists, chain.covers(target, cell)), z3.Not(at_its_place))

    def _writes(self, writer: Instance, buffer: str) -> bool:
        return any(target.buffer.name == buffer for target in writes(writer.operation))

    def _word(self, instance: Instance) -> str:
        return f"{type(instance.operation).__name__} of {self.model.names[instance.site.phase]}"


def queries(function: SchemeFunction) -> Iterator[Query]:
    """That every row arrives, that it stays what it was until it is read, and that nothing else is written."""
    result = ResultModel(function)
    yield from result.arrives()
    yield from result.stays()
    yield from result.untouched()


T3 = Theorem[SchemeFunction]("T3", "the result", CLAIM, queries, lambda function: search(function, wrong_rows))
