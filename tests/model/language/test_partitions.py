"""Partitions against their contract and against a plain loop."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.language.contract import Clause, contract, distinct, of_two_runs
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Piece, Pieces, Run, Runs, by_block, by_chunk, by_row
from tests.support.programs import total, transfers

Partition = Callable[[PagedRows], Runs]
EXAMPLES = 200
PARTITIONS = [by_row, by_block]
SAMPLE = PagedRows(total([4, 0, 3, 1]), 5, 4, 3, 14)
"""Rows 3 to 13 in blocks of 4: one row of block 4, all of 0 and 3, two rows of block 1."""


def clauses(parts: Pieces[Piece]) -> list[Clause]:
    """The contract for all parts and rows, and for numbers a little outside."""
    numbers, positions = range(-1, parts.number + 2), range(-1, parts.length + 2)
    pairs = [clause for i in numbers for j in numbers for clause in contract(parts, i, j, 0)]
    return pairs + [clause for i in numbers for position in positions for clause in contract(parts, i, i, position)]


def violated(parts: Pieces[Piece]) -> set[str]:
    return {clause.name for clause in clauses(parts) if clause.premise and not clause.conclusion}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_partition_fulfils_the_contract(partition: Partition) -> None:
    held: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(transfers())
    def fulfils(drawn: tuple[PagedRows, tuple[int, ...]]) -> None:
        in_pool = tuple(min(block, drawn[0].num_blocks - 1) for block in drawn[1])
        found = clauses(partition(replace(drawn[0], table=total(in_pool))))
        assert [clause.name for clause in found if clause.premise and not clause.conclusion] == []
        held.update(clause.name for clause in found if clause.premise)

    fulfils()
    assert len(held) == len({clause.name for clause in contract(partition(SAMPLE), 0, 0, 0)})
    assert min(held.values()) > EXAMPLES, "each clause had something to say"


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_runs_hold_the_rows_of_the_transfer(partition: Partition) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(transfers())
    def hold(drawn: tuple[PagedRows, tuple[int, ...]]) -> None:
        rows, table = drawn
        expected = []
        for position, row in enumerate(range(rows.start, rows.stop)):
            expected.append((position, table[row // rows.block_size], row % rows.block_size))
        assert flat(partition(rows)) == expected

    hold()


def flat(runs: Runs) -> list[tuple[int, int, int]]:
    """All runs, one after the other: position, block and row in it."""
    found = [runs.part(i) for i in range(runs.number)]
    return [(run.position + k, run.slot, run.start + k) for run in found for k in range(run.count)]


def spelled(runs: Runs) -> list[tuple[int, int, int, int]]:
    found = [runs.part(i) for i in range(runs.number)]
    return [(run.slot, run.start, run.count, run.position) for run in found]


def test_the_first_and_the_last_block_are_clipped() -> None:
    assert spelled(by_block(SAMPLE)) == [(4, 3, 1, 0), (0, 0, 4, 1), (3, 0, 4, 5), (1, 0, 2, 9)]


def test_one_block_is_clipped_on_both_sides() -> None:
    assert spelled(by_block(replace(SAMPLE, start=5, stop=7))) == [(0, 1, 2, 0)]


def test_a_full_block_is_one_run() -> None:
    assert spelled(by_block(replace(SAMPLE, start=4, stop=8))) == [(0, 0, 4, 0)]


@pytest.mark.parametrize("start", [0, 3, 4, 5])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_no_rows_are_no_runs(partition: Partition, start: int) -> None:
    runs = partition(replace(SAMPLE, start=start, stop=start))
    assert (runs.number, runs.length) == (0, 0)
    assert violated(runs) == set()


def changed(runs: Runs, **changes: int) -> Runs:
    """Every run with its fields moved by so much; `only` picks one run."""
    only = changes.pop("only", None)

    def run(i: int) -> Run:
        old = runs.part(i)
        if only is not None and i != only:
            return old
        return replace(old, **{name: getattr(old, name) + change for name, change in changes.items()})

    return replace(runs, part=run)


LAST = by_block(SAMPLE).number - 1
BROKEN = {
    "unclipped last block": (changed(by_block(SAMPLE), only=LAST, count=2), "a part lies inside the transfer"),
    "unclipped first block": (changed(by_block(SAMPLE), only=0, start=-3, position=-3, count=3), "a part lies inside the transfer"),
    "overlapping": (changed(by_block(SAMPLE), only=0, count=1), "parts are disjoint and in order"),
    "a row short": (changed(by_block(SAMPLE), only=1, count=-1), "the holder of a row holds it"),
    "addresses off by one": (changed(by_row(SAMPLE), only=1, start=1), "each row of a run lies at its address"),
    "the wrong block": (changed(by_block(SAMPLE), only=1, slot=1), "each row of a run lies at its address"),
    "a block that the pool has not": (changed(by_block(SAMPLE), slot=5), "a run's block lies in the pool"),
    "over the block's end": (changed(by_block(SAMPLE), only=1, start=1), "a run lies inside one block"),
    "an empty run": (changed(by_row(SAMPLE), only=1, count=-1), "a part holds a row, and no more than the longest"),
    "longer than the longest": (replace(by_block(SAMPLE), longest=3), "a part holds a row, and no more than the longest"),
    "one run too few": (replace(by_block(SAMPLE), number=LAST), "each row has a holder"),
    "fewer than none": (replace(by_block(SAMPLE), number=-1), "the number of parts is not negative"),
    "fewer rows than none": (replace(by_block(SAMPLE), length=-1), "the number of rows is not negative"),
    "no longest": (replace(by_block(SAMPLE), longest=0), "the longest part may hold a row"),
    "an address that the pool has not": (replace(by_row(SAMPLE), num_blocks=4), "each row's address lies in the pool"),
    "another holder": (replace(by_block(SAMPLE), holder=lambda position: 0), "no other part holds it"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_partition_violates_the_contract(name: str) -> None:
    runs, clause = BROKEN[name]
    assert clause in violated(runs)


def test_every_clause_is_violated_by_something() -> None:
    assert {clause.name for clause in contract(by_row(SAMPLE), 0, 0, 0)} == {clause for _, clause in BROKEN.values()}


def test_a_block_is_touched_where_a_row_lies_in_it() -> None:
    seen: Counter[bool] = Counter()
    for size, start, stop, block in product(range(1, 4), range(6), range(7), range(7)):
        rows = PagedRows(total([]), 1, size, start, stop)
        expected = any(row // size == block for row in range(start, stop))
        assert rows.touches(block) == expected
        seen[expected] += 1
    assert min(seen.values()) > 100


@pytest.mark.parametrize(("partition", "shared"), [(by_row, [(1, 9), (2, 10), (9, 1), (10, 2)]), (by_block, [(1, 3), (3, 1)])])
def test_only_a_table_without_repetition_keeps_runs_apart_in_the_pool(partition: Partition, shared: list[tuple[int, int]]) -> None:
    assert sharing(partition(SAMPLE)) == []
    # Rows 4 to 7 and rows 12 and 13 both lie in block 0, from its row 0 on: rows 1, 2 and rows 9, 10 of the transfer.
    assert sharing(partition(replace(SAMPLE, table=total([4, 0, 3, 0])))) == shared


def sharing(runs: Runs) -> list[tuple[int, int]]:
    """The pairs of runs that break the promise of a table without repetition."""
    numbers = range(-1, runs.number + 1)
    clauses = [(i, j, clause) for i in numbers for j in numbers for clause in of_two_runs(runs, i, j)]
    assert any(clause.premise for _, _, clause in clauses)
    return [(i, j) for i, j, clause in clauses if clause.premise and not clause.conclusion]


# -- pieces: wherever their blocks lie

CHUNKS = range(1, 15)


def chunk_by_chunk(rows: PagedRows, chunk: int) -> list[tuple[int, int]]:
    """A plain loop: first row and number of rows of each piece."""
    pieces, left, position = [], rows.stop - rows.start, 0
    while left > 0:
        pieces.append((position, min(left, chunk)))
        position, left = position + chunk, left - chunk
    return pieces


def test_chunks_are_those_of_a_plain_loop_and_fulfil_the_contract() -> None:
    held: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(transfers(), st.sampled_from(CHUNKS))
    def agree(drawn: tuple[PagedRows, tuple[int, ...]], chunk: int) -> None:
        in_pool = tuple(min(block, drawn[0].num_blocks - 1) for block in drawn[1])
        rows = replace(drawn[0], table=total(in_pool))
        pieces = by_chunk(rows, chunk)
        parts = [pieces.part(i) for i in range(pieces.number)]
        assert [(piece.position, piece.count) for piece in parts] == chunk_by_chunk(rows, chunk)
        holders = [i for i, piece in enumerate(parts) for _ in range(piece.count)]
        assert [pieces.holder(position) for position in range(pieces.length)] == holders
        found = clauses(pieces)
        assert [clause.name for clause in found if clause.premise and not clause.conclusion] == []
        held.update(clause.name for clause in found if clause.premise)

    agree()
    assert set(held) == {clause.name for clause in contract(by_chunk(SAMPLE, 4), 0, 0, 0)}
    assert min(held.values()) > EXAMPLES


def test_a_piece_knows_no_block() -> None:
    """One piece may reach across blocks: what a run promises of its block is not asked of it."""
    pieces = by_chunk(SAMPLE, 4)
    assert [(pieces.part(i).position, pieces.part(i).count) for i in range(pieces.number)] == [(0, 4), (4, 4), (8, 3)]
    assert [pieces.address(position) for position in range(4)] == [(4, 3), (0, 0), (0, 1), (0, 2)]
    promised = {clause.name for clause in contract(by_row(SAMPLE), 0, 0, 0)} - {clause.name for clause in contract(pieces, 0, 0, 0)}
    assert promised == {"a run lies inside one block", "a run's block lies in the pool", "each row of a run lies at its address"}


BROKEN_PIECES = {
    "an unclipped last piece": (by_chunk(replace(SAMPLE, stop=15), 4), 11, "a part lies inside the transfer"),
    "one piece too few": (by_chunk(replace(SAMPLE, stop=11), 4), 11, "each row has a holder"),
}


@pytest.mark.parametrize("name", BROKEN_PIECES)
def test_pieces_of_another_transfer_violate_the_contract(name: str) -> None:
    pieces, length, clause = BROKEN_PIECES[name]
    assert violated(pieces) == set()
    assert clause in violated(replace(pieces, length=length))


@pytest.mark.parametrize("parts", [by_row(SAMPLE), by_block(SAMPLE), by_chunk(SAMPLE, 4)])
def test_only_a_table_without_repetition_gives_each_row_an_address_of_its_own(parts: Pieces[Piece]) -> None:
    """The twin puts row 8 of the transfer where its row 0 lies."""
    twice = replace(parts, address=lambda position: (4, 3) if position == 8 else parts.address(position))
    assert sharing_rows(parts) == []
    assert sharing_rows(twice) == [(0, 8), (8, 0)]


def sharing_rows(parts: Pieces[Piece]) -> list[tuple[int, int]]:
    """The pairs of different rows of the transfer that have one address, and so break the promise."""
    rows = range(-1, parts.length + 1)
    found = [(p, q, c) for p in rows for q in rows for c in distinct(parts, 0, 0, p, q) if c.name.startswith("different rows")]
    assert len(found) == len(rows) ** 2
    return [(p, q) for p, q, clause in found if clause.premise and not clause.conclusion]
