"""What a call must deliver, and must leave alone: looked at in labelled memory after a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..language.buffers import Access
from ..language.scheme import Scheme
from ..ordering.program import span
from .cells import Cell, Cells, Content, Token, cells, every_cell


@dataclass(frozen=True, slots=True)
class Wrong:
    """A row that isn't what a call promised: which call, which row of the transfer, where, and what was found instead.

    `position` is None for a row that no row of the transfer goes to, and that changed all the same.
    """

    call: int
    position: int | None
    place: str
    found: str

    def __str__(self) -> str:
        row = "a row that the call must not touch" if self.position is None else f"row {self.position}"
        return f"call {self.call}: {row}, at {self.place}, holds {self.found}"


class DeliveryCheck:
    """Compares what a call delivers with what its source rows held when it began. One check for one call.

    `memory` is what there would be if each operation happened when it was issued: what the caller is promised.
    """

    def __init__(self, call: int, scheme: Scheme, memory: Cells) -> None:
        self._call = call
        self._memory = memory
        self._result = scheme.result
        self._due: dict[int, Content] = {}
        self._untouched: dict[Cell, Content] = {}
        if scheme.result is not None:
            result, positions = scheme.result, range(scheme.result.length)
            self._due = {position: memory.content(_one(result.source(position))) for position in positions}
            targets = {_one(result.target(position)) for position in positions}
            others = (cell for buffer in (result.pool, result.host) for cell in every_cell(buffer) if cell not in targets)
            self._untouched = {cell: memory.content(cell) for cell in others}

    def found(self, rows: Access) -> Iterator[Wrong]:
        """The caller is about to write rows of its own: the call has left alone what it finds there."""
        yield from self._changed(cells(rows))

    def overwritten(self, rows: Access) -> None:
        """The caller wrote rows of its own: these are as they should be now."""
        for cell in cells(rows):
            if cell in self._untouched:
                self._untouched[cell] = self._memory.content(cell)

    def delivered(self, position: int, rows: Access, memory: Cells) -> Iterator[Wrong]:
        """The caller reads a row of the result, in the memory that the run really has."""
        found = memory.content(_one(rows))
        if found != self._due[position]:
            yield Wrong(self._call, position, span(rows), self._words(found))

    def returned(self) -> Iterator[Wrong]:
        """The call and its caller are done: all other rows of the pool and of the host's buffer are as they were."""
        yield from self._changed(self._untouched)

    def _changed(self, looked_at: Iterable[Cell]) -> Iterator[Wrong]:
        for cell in looked_at:
            found = self._memory.content(cell)
            if found != self._untouched.get(cell, found):
                yield Wrong(self._call, None, _place(cell), self._words(found))

    def _words(self, content: Content) -> str:
        first, second = content
        whole = first == second
        return self._token(first) if whole else f"torn bytes: half of them {self._token(first)}, half of them {self._token(second)}"

    def _token(self, token: Token | None) -> str:
        if token is None:
            return "what was never written"
        for position, due in self._due.items():
            if due == (token, token):
                return f"row {position}"
        when = "at the start" if token.writer is None else f"after operation {token.writer}"
        return f"what {_place(token.cell)} held {when}"


def _one(rows: Access) -> Cell:
    (cell,) = cells(rows)
    return cell


def _place(cell: Cell) -> str:
    name, slot, row = cell
    return f"{name}[{slot}].rows[{row}:{row + 1}]"
