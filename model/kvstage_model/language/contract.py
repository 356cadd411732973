"""The contract of a partition: what each one is proved to fulfil, and what a scheme over any parts may assume.

Read with ints by the tests, and with symbols by the prover. The clauses are grouped by what they speak of, so that the
prover assumes each of them once for each part, row or pair that it meets.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .partitions import Piece, Pieces, Runs


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """One sentence: if the premise holds, the conclusion holds."""

    name: str
    premise: bool
    conclusion: bool


def contract(parts: Pieces[Piece], i: int, j: int, position: int) -> Iterator[Clause]:
    """All that a partition promises, for any two of its parts and any row of the transfer."""
    yield from of_whole(parts)
    yield from of_part(parts, i)
    yield from of_two_parts(parts, i, j)
    yield from of_row(parts, position)
    yield from of_part_and_row(parts, i, position)


def distinct(parts: Pieces[Piece], i: int, j: int, position: int, other: int) -> Iterator[Clause]:
    """What it promises beside that if no block occurs twice in the table, for any two parts and any two rows."""
    yield from of_two_rows(parts, position, other)
    if isinstance(parts, Runs):
        yield from of_two_runs(parts, i, j)


def is_part(parts: Pieces[Piece], i: int) -> bool:
    """Whether there is a part of this number."""
    return (i >= 0) & (i < parts.number)


def is_row(parts: Pieces[Piece], position: int) -> bool:
    """Whether the transfer has a row of this number."""
    return (position >= 0) & (position < parts.length)


def of_whole(parts: Pieces[Piece]) -> Iterator[Clause]:
    """What is promised of all parts together."""
    yield Clause("the number of parts is not negative", True, parts.number >= 0)
    yield Clause("the number of rows is not negative", True, parts.length >= 0)
    yield Clause("the longest part may hold a row", True, parts.longest >= 1)


def of_part(parts: Pieces[Piece], i: int) -> Iterator[Clause]:
    """What is promised of one part."""
    part = parts.part(i)
    exists, ends = is_part(parts, i), part.position + part.count
    yield Clause("a part holds a row, and no more than the longest", exists, (part.count >= 1) & (part.count <= parts.longest))
    yield Clause("a part lies inside the transfer", exists, (part.position >= 0) & (ends <= parts.length))
    if isinstance(parts, Runs):
        run = parts.part(i)
        yield Clause("a run lies inside one block", exists, (run.start >= 0) & (run.start + run.count <= parts.block_size))
        yield Clause("a run's block lies in the pool", exists, (run.slot >= 0) & (run.slot < parts.num_blocks))


def of_two_parts(parts: Pieces[Piece], i: int, j: int) -> Iterator[Clause]:
    """What is promised of two parts."""
    first, second = parts.part(i), parts.part(j)
    in_order = is_part(parts, i) & is_part(parts, j) & (i < j)
    yield Clause("parts are disjoint and in order", in_order, first.position + first.count <= second.position)


def of_row(parts: Pieces[Piece], position: int) -> Iterator[Clause]:
    """What is promised of one row."""
    (slot, start), exists = parts.address(position), is_row(parts, position)
    in_pool = (slot >= 0) & (slot < parts.num_blocks) & (start >= 0) & (start < parts.block_size)
    yield Clause("each row has a holder", exists, is_part(parts, parts.holder(position)))
    yield Clause("each row's address lies in the pool", exists, in_pool)


def of_part_and_row(parts: Pieces[Piece], i: int, position: int) -> Iterator[Clause]:
    """What is promised of a part and a row."""
    part, holder = parts.part(i), parts.holder(position)
    exists, row = is_part(parts, i), is_row(parts, position)
    held = (part.position <= position) & (position < part.position + part.count)
    yield Clause("the holder of a row holds it", row & (i == holder), held)
    yield Clause("no other part holds it", row & exists & held, i == holder)
    if isinstance(parts, Runs):
        run, (slot, start) = parts.part(i), parts.address(position)
        at_address = (slot == run.slot) & (start == run.start + position - run.position)
        yield Clause("each row of a run lies at its address", exists & held, at_address)


def of_two_rows(parts: Pieces[Piece], position: int, other: int) -> Iterator[Clause]:
    """What is promised of two rows if no block occurs twice in the table."""
    (slot, row), (other_slot, other_row) = parts.address(position), parts.address(other)
    one_address = is_row(parts, position) & is_row(parts, other) & (slot == other_slot) & (row == other_row)
    yield Clause("different rows lie at different addresses", one_address, position == other)


def of_two_runs(runs: Runs, i: int, j: int) -> Iterator[Clause]:
    """What is promised of two runs if no block occurs twice in the table."""
    first, second = runs.part(i), runs.part(j)
    both = is_part(runs, i) & is_part(runs, j) & (i != j)
    before = first.start + first.count <= second.start
    apart = (first.slot != second.slot) | before | (second.start + second.count <= first.start)
    yield Clause("no two runs share a row of the pool", both, apart)
