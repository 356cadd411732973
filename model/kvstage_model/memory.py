"""Labelled memory for the simulator: each cell says whose bytes it holds, in two halves.

A copy moves one half of each cell when it begins and the other one when it ends, so a cell that somebody touched in
between holds halves of two items: it is torn.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .bounds import broken_bound
from .buffers import Access, Buffer, parts
from .operations import HostRead, Operation, reads, writes
from .scheme import Direction, Scheme
from .trace import Issued, describe, span

Cell: TypeAlias = tuple[str, int, int]
"""One row of memory: the buffer's name, the slot, the row in it."""


@dataclass(frozen=True, slots=True)
class Token:
    """The bytes of one row, known by where they were first written, and by which operation of the program.

    `writer` is None for what was there at the start.
    """

    cell: Cell
    writer: int | None = None


Content: TypeAlias = tuple[Token | None, Token | None]
"""The two halves of a cell; None where nothing was ever written."""


def cells(access: Access) -> tuple[Cell, ...]:
    """The cells that an access reaches, in the order of its rows."""
    return tuple((rows.buffer.name, rows.slot, row) for rows in parts(access) for row in range(rows.start, rows.start + rows.count))


def every_cell(buffer: Buffer) -> tuple[Cell, ...]:
    """All cells of a buffer."""
    return tuple(cell for slot in range(buffer.slots) for cell in cells(buffer.at(slot, 0, buffer.rows)))


class BoundsError(ValueError):
    """An operation names rows that its buffer doesn't have, overlaps itself, or moves rows to fewer or more rows."""


def check(issued: Issued) -> None:
    """Raises BoundsError where an operation leaves its buffers, overlaps itself, or its two sides differ in length."""
    broken = broken_bound(issued.operation)
    if broken is not None:
        raise BoundsError(f"{describe(issued)}: {_outside(issued.operation) or f'not so: {broken}'}")


def _outside(operation: Operation) -> str | None:
    """The first rows that are not inside their buffer, in words; the row alone of what a kernel reaches row by row."""
    for access in (*reads(operation), *writes(operation)):
        for rows in parts(access):
            if broken_bound(HostRead(rows)) is not None:
                buffer = rows.buffer
                return f"{span(rows)} is not inside {buffer.name}, which has {buffer.slots} slots of {buffer.rows} rows"
    return None


class Cells:
    """All memory. At the start the buffers called `filled` hold a token in each cell, the others were never written."""

    def __init__(self, filled: Collection[str]) -> None:
        self._filled = frozenset(filled)
        self._halves: dict[Cell, list[Token | None]] = {}

    def _at(self, cell: Cell) -> list[Token | None]:
        start = Token(cell) if cell[0] in self._filled else None
        return self._halves.setdefault(cell, [start, start])

    def content(self, cell: Cell) -> Content:
        """What a cell holds now."""
        first, second = self._at(cell)
        return first, second

    def move(self, source: Access, target: Access, half: int) -> None:
        """Moves one half of each cell."""
        moved = [self._at(cell)[half] for cell in cells(source)]
        for cell, token in zip(cells(target), moved, strict=True):
            self._at(cell)[half] = token

    def stamp(self, target: Access, writer: int, half: int) -> None:
        """Puts bytes that were never anywhere before into one half of each cell."""
        for cell in cells(target):
            self._at(cell)[half] = Token(cell, writer)


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


class Judge:
    """Compares what a call delivers with what its source rows held when it began. One judge for one call.

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
        """The caller is about to write rows of his own: the call has left alone what he finds there."""
        yield from self._changed(cells(rows))

    def overwritten(self, rows: Access) -> None:
        """The caller wrote rows of his own: these are as they should be now."""
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


def initially_filled(calls: Collection[Scheme]) -> frozenset[str]:
    """The buffers that hold rows before the first call: all pools, and what the caller writes from."""
    results = [scheme.result for scheme in calls if scheme.result is not None]
    pools = {result.pool.name for result in results}
    return frozenset(pools | {result.host.name for result in results if result.direction is Direction.WRITE})
