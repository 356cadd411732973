"""Where the row in a cell came from: the chain of operations that brought it there, within one window."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import z3

from kvstage_model.model import Instance
from kvstage_model.operations import Access, Launch, Paged, Rows, reads, writes
from kvstage_model.symbolic import Term
from kvstage_model.window import Window

Arrived: TypeAlias = Callable[[Rows], Term]


class Chain:
    """The question where a cell's row came from. `source` is the buffer that rows come from, `position` the row followed."""

    def __init__(self, window: Window, source: str, position: int) -> None:
        self.window, self.world = window, window.world
        self.source, self.position = source, position

    def comes(self, cell: Rows, reader: Instance, witnesses: list[Instance], arrived: Arrived) -> Term:
        """That some witness wrote the cell before the reader began, with a row that satisfies `arrived` at its source."""
        found = [self._no]
        for witness, row, covers in self.writers_of(cell, witnesses):
            if witness is not reader:
                origin = self.origin(row, witness, [other for other in witnesses if other is not witness], arrived)
                found.append(z3.And(witness.exists, witness.end <= reader.begin, covers, origin))
        return z3.Or(found)

    def writers_of(self, cell: Rows, witnesses: list[Instance]) -> Iterator[tuple[Instance, int, Term]]:
        """The witnesses that move a row into a buffer's cell: which row of theirs it is, and that they do reach the cell.

        Which row of a kernel's it is can't be read off the cell: it is the row that is followed, or it counts for nothing.
        """
        for witness in witnesses:
            if not reads(witness.operation) or isinstance(witness.operation, Launch):
                continue
            for target in writes(witness.operation):
                if target.buffer.name != cell.buffer.name:
                    continue
                if isinstance(target, Paged):
                    row = self.position - target.first
                    reached = self.world.formula((row >= 0) & (row < target.count))
                    yield witness, row, z3.And(reached, self.is_cell(target.at(row), cell))
                else:
                    yield witness, cell.start - target.start, self.window.overlap(target, cell)

    def origin(self, row: int, writer: Instance, witnesses: list[Instance], arrived: Arrived) -> Term:
        """That row number `row` of what a writer moves satisfies `arrived` at its source."""
        (source,) = reads(writer.operation)
        taken = self.row_of(source, row)
        return arrived(taken) if taken.buffer.name == self.source else self.comes(taken, writer, witnesses, arrived)

    def row_of(self, access: Access, row: int) -> Rows:
        """One row of an access."""
        return access.at(row) if isinstance(access, Paged) else access.buffer.at(access.slot, access.start + row, 1)

    def some_cell(self, access: Access, name: str) -> tuple[Rows, int, Term]:
        """Some cell of an access, which row of it that is, and that it has this row."""
        row = self.world.integer(name)
        return self.row_of(access, row), row, self.world.formula((row >= 0) & (row < access.count))

    def is_cell(self, cell: Rows, other: Rows) -> Term:
        """That two cells are one."""
        if cell.buffer.name != other.buffer.name:
            return self._no
        term = self.world.term
        return z3.And(term(cell.slot) == term(other.slot), term(cell.start) == term(other.start))

    def touches(self, access: Access, cell: Rows) -> Term:
        """That an access reaches a cell. For a doubt: it names the row."""
        return self.window.meet(access, cell)

    @property
    def _no(self) -> Term:
        return z3.BoolVal(False, self.world.context)
