"""The hunt for a wrong PROVED of T3: what the solver alone says of random loops, against the rows that they deliver.

A loop that delivers the right rows may be open all the same. The kinds known are those of `test_hunt`, and:

- The row is brought by another step than the scheme names, or from a step that no wait of the reader's aims at.
- A row is brought twice, and the second time is still under way when it is read: the bytes are the same all the while.
- A reader that has nothing to do with the result finds a slot as it was left by another step, or by nobody.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from kvstage_model.language.operations import Operation
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import allowing_duplicates
from kvstage_model.language.partitions import Runs, by_block, by_row
from kvstage_model.language.ranges import Flags
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering import axioms
from kvstage_model.ordering.axioms import Edge, Moment
from kvstage_model.schedules.drivers import NothingAsynchronousError, delays
from kvstage_model.schemes.gather import gather_pinned_write
from kvstage_model.search.faults import out_of_bounds, wrong_rows
from kvstage_model.simulation.simulator import simulate
from kvstage_model.symbolic import window
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t3_result, t7_bounds
from tests.soundness.test_hunt import FREE, Hunted, answers, called, left_open, ruled_out, widened
from tests.support.hunt import Body, Line, function, reduced
from tests.support.hunt_bodies import READ, delivering

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
TWO_CALLS = ((2, 2), (1, 3))
DEPTHS = ((1, 1), (2, 2), (1, 2))
"""Depths of a call and of a later one."""
TRIES = 12
"""Smaller bodies that are tried for one that is open."""


def partitions(rows: int, distinct: bool) -> Iterator[Runs]:
    """Transfers of so many rows, in a pool of four blocks: blocks in order, a history and blocks of two rows, one block for all."""
    yield by_row(PagedRows(lambda k: k, 4, 1, 0, rows))
    yield by_block(PagedRows([2, 0, 1, 3].__getitem__, 4, 2, 1, rows + 1))
    if not distinct:
        yield by_row(PagedRows(lambda k: 0, 4, 1, 0, rows))


def instances(tried: Body) -> Iterator[tuple[str, tuple[Scheme, ...]]]:
    """Two calls of every small length, partition and depth; depths differ from call to call or don't."""
    for first, second in TWO_CALLS:
        for number, cut in enumerate(zip(partitions(first, tried.distinct), partitions(second, tried.distinct), strict=True)):
            for slots in DEPTHS:
                for others in DEPTHS if "D" in str(tried) else DEPTHS[:1]:
                    for pattern in FREE if "free(i)" in str(tried) else FREE[:1]:
                        free = Flags(partial(answers, pattern))
                        words = f"{first} rows, then {second}, partition {number}; R = {slots}; D = {others}; free = {pattern}"
                        yield words, called(tried, cut, slots, others, free)


def wrong_row(tried: Body) -> str | None:
    """A wrong row, or rows out of bounds: in issue order, with two accesses overlapping, or with half a copy held back."""
    found = (wrong_rows(calls, words) for words, calls in instances(tried))
    counterexample = next((one for one in found if one is not None), None)
    if counterexample is not None:
        return "\n".join(counterexample.lines())
    for words, calls in instances(tried):
        assert out_of_bounds(calls, words) is None
        try:
            for schedule, simulation in delays(partial(simulate, calls)):
                if simulation.wrong:
                    return f"{words}, {schedule}: {simulation.wrong[0]}"
        except NothingAsynchronousError:
            continue
    return None


def open_query(tried: Body) -> str | None:
    """What of T3 stays open."""
    return left_open(t3_result.queries(function(tried)))


def proved(tried: Body, reach: int) -> bool:
    """Whether T3 is proved in windows of that reach."""
    return all(ruled_out(widened(query, reach)) for query in t3_result.queries(function(tried)))


def false_proof(tried: Body, reach: int) -> str | None:
    """A wrong row of a body of which T3 is proved."""
    wrong = wrong_row(tried)
    return wrong if wrong and proved(tried, reach) else None


def hunt(seeds: range, reach: int) -> Hunted:
    """The verdicts on T3 of the bodies of some seeds. A wrong row of a body that is proved fails the test."""
    hunted = Hunted(Counter())
    for seed in seeds:
        tried = delivering(seed)
        wrong = wrong_row(tried)
        if wrong and proved(tried, reach):
            small = reduced(tried, lambda other: false_proof(other, reach) is not None)
            pytest.fail(f"seed {seed}: PROVED, and yet {wrong}\nthe body: {tried}\nreduced: {small}\n{false_proof(small, reach)}")
        name = None if wrong else open_query(tried)
        hunted.seen[REFUTED if wrong else UNKNOWN if name else PROVED] += 1
        if name:
            hunted.open.append((seed, tried, name))
    return hunted


def smallest_open(tried: Body) -> Body:
    """A body that delivers the right rows and is open, reduced as far as a few tries do it."""
    return reduced(tried, lambda other: open_query(other) is not None and wrong_row(other) is None, TRIES)


def test_no_random_loop_that_is_proved_delivers_wrong_rows() -> None:
    hunted = hunt(range(4), reach=1)
    print(hunted)
    assert hunted.seen[PROVED] >= 1
    assert hunted.seen[REFUTED] >= 1


@pytest.mark.extended
@pytest.mark.parametrize("part", range(8))
def test_no_random_loop_of_many_that_is_proved_delivers_wrong_rows(part: int) -> None:
    hunted = hunt(range(1000 + 16 * part, 1016 + 16 * part), t3_result.REACH)
    print(hunted)
    for _, tried, name in hunted.open[:1]:
        print("reduced:", name, smallest_open(tried))
    assert hunted.seen[PROVED] >= 1
    assert hunted.seen[REFUTED] >= 1


UNWAITED = Body((Line("fetch"), Line("take"), Line("sync")), direction=READ)
"""A row is taken before the copy that brings it is waited for."""


def test_a_prover_with_a_wrong_axiom_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that is done as soon as it is issued needs no waits: so the loop without one is PROVED, and is wrong."""

    def ends_at_issue(first: Operation, second: Operation) -> Iterator[Edge]:
        yield from axioms.edges(first, second)
        yield Edge("A1", Moment.END, Moment.ISSUE)

    assert wrong_row(UNWAITED) is not None
    assert false_proof(UNWAITED, reach=1) is None
    monkeypatch.setattr(window, "edges", ends_at_issue)
    monkeypatch.setattr(f"{__name__}.delivering", lambda seed: UNWAITED)
    with pytest.raises(pytest.fail.Exception, match="seed 7: PROVED, and yet"):
        hunt(range(7, 8), reach=1)


# -- what hunts and adversaries found


def test_a_row_that_goes_round_between_two_buffers_is_followed_to_its_source() -> None:
    """The chain of witnesses had no end where rows go from one buffer to another and back."""
    lines = (Line("fetch"), Line("sync"), Line("up"), Line("down"), Line("sync"), Line("take"))
    assert open_query(Body(lines, direction=READ)) is None
    assert wrong_row(Body(lines, direction=READ)) is None
    never_fetched = Body(lines[1:], direction=READ)
    assert open_query(never_fetched) == "row p of the result comes from its source"
    assert wrong_row(never_fetched) is not None


def test_t3_says_nothing_of_one_kernel_that_writes_a_row_twice_and_t7_does() -> None:
    """Which of the two rows stays is within one operation: T7 demands that there is one."""
    twice = allowing_duplicates(gather_pinned_write)
    assert left_open(t3_result.queries(twice)) is None
    assert left_open(t7_bounds.queries(twice)) is not None
    assert left_open(t7_bounds.queries(gather_pinned_write)) is None
