"""Labelled memory for the simulator: each cell says whose bytes it holds, in two halves.

A copy moves one half of each cell when it begins and the other one when it ends, so a cell that was touched in
between holds halves of two items: it is torn.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from ..language.bounds import broken_bound
from ..language.buffers import Access, Buffer, parts
from ..language.operations import HostRead, Operation, reads, writes
from ..language.scheme import Direction, Scheme
from ..ordering.program import Issued, describe, span

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
"""The two halves of a cell; None if nothing was ever written."""


def cells(access: Access) -> tuple[Cell, ...]:
    """The cells that an access reaches, in the order of its rows."""
    return tuple((rows.buffer.name, rows.slot, row) for rows in parts(access) for row in range(rows.start, rows.start + rows.count))


def every_cell(buffer: Buffer) -> tuple[Cell, ...]:
    """All cells of a buffer."""
    return tuple(cell for slot in range(buffer.slots) for cell in cells(buffer.at(slot, 0, buffer.rows)))


class BoundsError(ValueError):
    """An operation names rows that its buffer doesn't have, overlaps itself, or moves rows to fewer or more rows."""


def demand_bounds(issued: Issued) -> None:
    """Raises BoundsError if an operation leaves its buffers, overlaps itself, or its two sides differ in length."""
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


def initially_filled(calls: Collection[Scheme]) -> frozenset[str]:
    """The buffers that hold rows before the first call: all pools, and what the caller writes from."""
    results = [scheme.result for scheme in calls if scheme.result is not None]
    pools = {result.pool.name for result in results}
    return frozenset(pools | {result.host.name for result in results if result.direction is Direction.WRITE})
