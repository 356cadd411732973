"""Where the row in a cell came from: the chain of operations that brought it there, within one window."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import z3

from kvstage_model.language.buffers import Access, Paged, Rows
from kvstage_model.language.operations import moves, writes
from kvstage_model.symbolic.scheme_model import Instance, Site
from kvstage_model.symbolic.window import Window
from kvstage_model.symbolic.z3_terms import Term

Arrived: TypeAlias = Callable[[Rows], Term]
Near: TypeAlias = Callable[[Window, Instance], list[Instance]]
"""The operations among which a reader's witness is looked for; a function of the reader alone."""


class Chain:
    """The question where a cell's row came from. `source` is the buffer that rows come from, `position` the row followed.

    A reader has one witness for a cell: the operation issued last before it, among those of the steps that `near` names
    for this reader, that writes the cell. All queries about this reader and cell mean this one. That it is the right one
    is what they prove: nothing depends on how it is chosen.
    """

    def __init__(self, window: Window, source: str, position: int, near: Near) -> None:
        self.window, self.world, self.near = window, window.world, near
        self.source, self.position = source, position

    def comes(self, cell: Rows, reader: Instance, arrived: Arrived, passed: tuple[Site, ...] = ()) -> Term:
        """That the witness had ended when the reader began, and brought a row that satisfies `arrived` at its source.

        A chain passes no line of the scheme twice (`passed` has those it came by): if rows go round between two
        buffers it would never end.
        """
        found = [self._no]
        for witness, (part, row), is_witness in self.witnesses(cell, reader):
            if moves(witness.operation) and not any(_one(witness.site, site) for site in passed):
                origin = self.origin(part, row, witness, arrived, passed)
                found.append(z3.And(is_witness, witness.end <= reader.begin, origin))
        return z3.Or(found)

    def witnesses(self, cell: Rows, reader: Instance) -> Iterator[tuple[Instance, tuple[int, int], Term]]:
        """Each operation that may be the witness, which of its targets and which row of it the cell is, and that it is."""
        writers = list(self._writers(cell, reader))
        for number, (witness, row, writes_it) in enumerate(writers):
            last = [
                z3.Not(z3.And(other_writes, self.window.before(witness, other)))
                for other_number, (other, _, other_writes) in enumerate(writers)
                if other_number != number
            ]
            yield witness, row, z3.And(writes_it, *last)

    def _writers(self, cell: Rows, reader: Instance) -> Iterator[tuple[Instance, tuple[int, int], Term]]:
        """What is issued before the reader and writes the cell, and which of its targets and which row of it the cell is.

        Which row of a kernel's it is can't be read off the cell: it is the row that is followed, or it counts for nothing.
        """
        for writer in self.near(self.window, reader):
            issued = z3.And(writer.exists, self.window.before(writer, reader))
            for part, target in enumerate(writes(writer.operation)):
                if target.buffer.name != cell.buffer.name:
                    continue
                if isinstance(target, Paged):
                    row = self.position - target.first
                    reached = self.world.formula((row >= 0) & (row < target.count))
                    yield writer, (part, row), z3.And(issued, reached, self.is_cell(target.at(row), cell))
                else:
                    yield writer, (part, cell.start - target.start), z3.And(issued, self.window.overlap(target, cell))

    def origin(self, part: int, row: int, writer: Instance, arrived: Arrived, passed: tuple[Site, ...] = ()) -> Term:
        """That row `row` of the `part`-th target of what a writer moves satisfies `arrived` at its source."""
        source, _ = moves(writer.operation)[part]
        taken = self.row_of(source, row)
        if taken.buffer.name == self.source:
            return arrived(taken)
        return self.comes(taken, writer, arrived, (*passed, writer.site))

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


def _one(site: Site, other: Site) -> bool:
    return (site.phase, site.position) == (other.phase, other.position)
