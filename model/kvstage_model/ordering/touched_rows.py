"""Which operations have touched rows: for each piece of a buffer the latest on each line, and those before it.

A new access is compared with those alone that have rows in common with it, so a program of thousands of operations is judged in
about the time in which it is read.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from ..language.buffers import Rows

Link: TypeAlias = "tuple[int, Link | None]"
"""The number of an operation, and what its line did there before."""

Piece: TypeAlias = dict[tuple[int, bool], Link]
"""What was done to rows that have all been touched by the same operations: by line, and whether they were written."""

LOWEST = -(1 << 70)


class TouchedRows:
    """Operations by the rows that they touch. Needs concrete rows."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int], tuple[list[int], list[Piece]]] = {}

    def of(self, rows: Rows, writing: bool) -> Iterator[Link]:
        """What was done to some of the rows, the latest of each line: writes, and what `writing` conflicts with, too, reads."""
        starts, pieces = self._buffers.get((rows.buffer.name, rows.slot), ((), ()))
        if rows.count <= 0 or not pieces:
            return
        first, last = bisect_right(starts, rows.start) - 1, bisect_left(starts, rows.start + rows.count)
        for piece in pieces[first:last]:
            for (_, written), link in piece.items():
                if written or writing:
                    yield link

    def add(self, rows: Rows, writing: bool, line: int, number: int) -> None:
        """An operation has touched rows. Numbers come in rising order."""
        if rows.count <= 0:
            return
        starts, pieces = self._buffers.setdefault((rows.buffer.name, rows.slot), ([LOWEST], [{}]))
        first, last = _cut(starts, pieces, rows.start), _cut(starts, pieces, rows.start + rows.count)
        for piece in pieces[first:last]:
            before = piece.get((line, writing))
            if before is None or before[0] != number:
                piece[line, writing] = (number, before)


def _cut(starts: list[int], pieces: list[Piece], start: int) -> int:
    """The piece that begins at `start`, which is made if there is none."""
    at = bisect_left(starts, start)
    if at == len(starts) or starts[at] != start:
        starts.insert(at, start)
        pieces.insert(at, dict(pieces[at - 1]))
    return at
