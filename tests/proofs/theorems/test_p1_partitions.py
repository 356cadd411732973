"""P1 on partitions that are wrong in one way: none is proved."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Piece, Pieces, Run, Runs, by_block, by_chunk, by_row
from kvstage_model.language.ranges import Positive
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.p1_partitions import P1, Cut, queries
from tests.support.tiers import often

PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED, *_ = Verdict
Change = Callable[[PagedRows, Runs], Runs]


def changed(cut: Cut, change: Change) -> Cut:
    """A partition whose runs are changed."""

    def wrong(rows: PagedRows) -> Runs:
        return change(rows, cut(rows))

    return wrong


def each(change: Callable[[PagedRows, int, Run], Run]) -> Change:
    return lambda rows, runs: replace(runs, part=lambda i: change(rows, i, runs.part(i)))


def unclipped_first(rows: PagedRows, i: int, run: Run) -> Run:
    """The first block from its first row on, history and all."""
    return replace(run, start=0, count=run.start + run.count) if i == 0 else run


def unclipped_last(rows: PagedRows, i: int, run: Run) -> Run:
    return replace(run, count=rows.block_size - run.start)


def swapped(rows: PagedRows, runs: Runs) -> Runs:
    return replace(runs, part=lambda i: runs.part(runs.number - 1 - i))


WRONG: dict[str, tuple[Cut, Change]] = {
    "the first block unclipped": (by_block, each(unclipped_first)),
    "the last block unclipped": (by_block, each(unclipped_last)),
    "a count of one more": (by_block, each(lambda rows, i, run: replace(run, count=run.count + 1))),
    "a count of one less": (by_block, each(lambda rows, i, run: replace(run, count=run.count - 1))),
    "one run less": (by_block, lambda rows, runs: replace(runs, number=runs.number - 1)),
    "the holder off by one": (by_block, lambda rows, runs: replace(runs, holder=lambda p: runs.holder(p) + 1)),
    "the holder without the history": (by_block, lambda rows, runs: replace(runs, holder=lambda p: p // rows.block_size)),
    "the position off by one": (by_block, each(lambda rows, i, run: replace(run, position=run.position + 1))),
    "runs in reverse": (by_block, swapped),
    "the table read without the history": (by_block, each(lambda rows, i, run: replace(run, slot=rows.table(i)))),
    "runs shorter than said": (by_block, lambda rows, runs: replace(runs, longest=runs.longest - 1)),
    "a row further, in rows": (by_row, each(lambda rows, i, run: replace(run, start=run.start + 1))),
    "two rows a run": (by_row, each(lambda rows, i, run: replace(run, count=2))),
    "each row twice": (by_row, lambda rows, runs: replace(runs, number=runs.number * 2, part=lambda i: runs.part(i // 2))),
    "every other row": (by_row, lambda rows, runs: replace(runs, number=runs.number // 2, part=lambda i: runs.part(i * 2))),
    "the wrong block's size": (by_row, each(lambda rows, i, run: replace(run, start=(rows.start + i) % (rows.block_size + 1)))),
}  # fmt: skip


@pytest.mark.parametrize(("cut", "change"), often(WRONG.values(), 5), ids=WRONG.keys())
def test_a_wrong_partition_is_refuted_with_its_transfer(cut: Cut, change: Change) -> None:
    judgement = judge(P1.of(changed(cut, change), "wrong"))
    assert judgement.verdict is REFUTED, judgement.reason
    assert judgement.counterexample is not None
    assert judgement.counterexample.values.startswith("rows ")
    assert judgement.reason == "", "the solver took it for proved"


def with_parts(change: Callable[[Pieces[Piece], int], Piece]) -> Cut:
    """Chunks whose pieces are changed."""

    def cut(rows: PagedRows, chunk: Positive) -> Pieces[Piece]:
        pieces = by_chunk(rows, chunk)
        return replace(pieces, part=lambda i: change(pieces, i))

    return cut


def with_holder(change: int) -> Cut:
    def cut(rows: PagedRows, chunk: Positive) -> Pieces[Piece]:
        pieces = by_chunk(rows, chunk)
        return replace(pieces, holder=lambda position: pieces.holder(position + change))

    return cut


def rounded_down(rows: PagedRows, chunk: Positive) -> Pieces[Piece]:
    return replace(by_chunk(rows, chunk), number=(rows.stop - rows.start) // chunk)


WRONG_PIECES: dict[str, Cut] = {
    "the last piece unclipped": with_parts(lambda pieces, i: Piece(i * pieces.longest, pieces.longest)),
    "the last piece lost where it is clipped": rounded_down,
    "the first row twice": with_parts(lambda pieces, i: Piece(max(pieces.part(i).position - 1, 0), pieces.part(i).count)),
    "a row of each piece lost": with_parts(lambda pieces, i: Piece(pieces.part(i).position, pieces.part(i).count - 1)),
    "the holder of the row before": with_holder(-1),
}


@pytest.mark.parametrize("cut", WRONG_PIECES.values(), ids=WRONG_PIECES.keys())
def test_pieces_that_are_wrong_in_one_way_are_refuted(cut: Cut) -> None:
    judgement = judge(P1.of(cut, "wrong"))
    assert judgement.verdict is REFUTED, judgement.reason
    assert judgement.counterexample is not None
    assert "chunk = " in judgement.counterexample.values
    assert judgement.reason == "", "the solver took it for proved"


def next_block(rows: PagedRows, i: int, run: Run) -> Run:
    return replace(run, slot=rows.table(rows.start // rows.block_size + i + 1))


def one_more(rows: PagedRows, runs: Runs) -> Runs:
    return replace(runs, number=runs.number + 1)


def a_run_of_nothing(rows: PagedRows, runs: Runs) -> Runs:
    return replace(runs, number=1 if rows.start == rows.stop else runs.number)


def address_of_the_next(rows: PagedRows, runs: Runs) -> Runs:
    return replace(runs, address=lambda p: runs.address(p + 1))


@pytest.mark.parametrize("change", often([one_more, a_run_of_nothing, each(next_block), address_of_the_next], 1))
def test_what_no_small_transfer_can_show_is_not_proved_either(change: Change) -> None:
    """Nothing of the table lies beyond its end, and the search tries no empty transfer: the solver alone decides."""
    assert verdict_of(tuple(ask(query) for query in queries(changed(by_block, change))))[0] is UNKNOWN


@pytest.mark.parametrize(("cut", "clauses"), [(by_row, 15), (by_block, 15), (by_chunk, 11)])
def test_a_right_partition_is_proved_clause_by_clause(cut: Cut, clauses: int) -> None:
    judgement = judge(P1.of(cut, "right"))
    assert judgement.verdict is PROVED
    assert len(judgement.asked) == clauses
    assert all(asked.proves for asked in judgement.asked)


def test_a_partition_may_choose_by_the_block_size() -> None:
    """Paths are judged one by one: right on each of them, and wrong on one of them."""

    def either(rows: PagedRows) -> Runs:
        return by_row(rows) if rows.block_size == 1 else by_block(rows)

    def one_wrong(rows: PagedRows) -> Runs:
        runs = by_row(rows)
        return replace(runs, number=runs.number - 1) if rows.block_size == 7 else runs

    assert judge(P1.of(either, "either")).verdict is PROVED
    assert verdict_of(tuple(ask(query) for query in queries(one_wrong)))[0] is UNKNOWN


def test_runs_share_no_row_only_where_no_block_occurs_twice() -> None:
    *_, last = queries(by_block)
    assert last.name == "no two runs share a row of the pool"
    assert ask(last).proves
