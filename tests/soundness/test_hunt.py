"""The hunt for a wrong PROVED of T1: what the solver alone rules out of random loops, against their small instances.

Each pair of operations that races in an instance must be open, however far the window is widened: so a loop that races
is a test too. A loop that does not race may be open all the same: the prover is sound, not complete. The kinds known:

- An event is recorded on two streams: all but the last record before a wait count for nothing, and which one is the
  last is not asked, so no record of such an event orders anything.
- A wait without an aim, or with a wrong one: the record that it waits for lies in a step that is not in the window.
- An order that takes a third step, such as the previous item in the same slot, which no aim names.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
import z3

from kvstage_model.language.operations import Operation
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Runs, by_block, by_row
from kvstage_model.language.ranges import Flags
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering import axioms
from kvstage_model.ordering.axioms import Edge, Moment
from kvstage_model.ordering.program import Issued, unroll
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.symbolic import scheme_model, window
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.solvers.query import Query
from kvstage_proofs.theorems import t1_no_hazard
from tests.support.hunt import Body, Line, function, reduced
from tests.support.hunt_bodies import body

PROVED, REFUTED, VACUOUS, UNKNOWN = list(Verdict)[:4]
TWO_CALLS, OF_BLOCKS = ((2, 2), (1, 3), (4, 2)), (3, 4)
"""Items of a call and of a later one. The first call alone is a part of them: what comes later orders nothing before."""
DEPTHS = ((1, 1), (2, 2), (3, 3), (1, 3), (2, 1))
"""Depths of a call and of a later one."""
ENOUGH = 8
"""Slots of a buffer: more than the largest item or step of these instances."""
FREE = ((1, 1), (0, 0), (0, 1), (1, 0))
"""Answers of the queries in even and in odd steps."""
BUDGET = 3_000_000
"""Steps of the solver for one question: it takes half of them where it rules something out."""


@dataclass(frozen=True, eq=False)
class Raced:
    """A race in an instance of a body."""

    instance: str
    program: tuple[Issued, ...]
    race: Race

    def __str__(self) -> str:
        trace = HappensBefore(self.program).schedule(self.race).until(self.race.first, self.race.second)
        return "\n".join([self.instance, *trace.lines(self.race.first, self.race.second)])


def answers(pattern: tuple[int, int], step: int) -> int:
    """What queries answer in a step."""
    return pattern[step % 2]


def instances(tried: Body) -> Iterator[tuple[str, tuple[Issued, ...]]]:
    """Programs of two calls of every small length and depth, which differ from call to call or don't.

    Runs of one row, and all of them in one block where that may be; and runs of one row and of two, for what depends on
    the length of a run.
    """

    def table(k: int) -> int:
        return k if tried.distinct else 0

    def rows(length: int) -> Runs:
        return by_row(PagedRows(table, length, 1, 0, length))

    def blocks(length: int) -> Runs:
        return by_block(PagedRows(table, length, 2, 1, 2 * length - 1))

    for cut, lengths in (*((rows, lengths) for lengths in TWO_CALLS), (blocks, OF_BLOCKS)):
        runs = [cut(length) for length in lengths]
        for slots in DEPTHS:
            for others in DEPTHS if "D" in str(tried) else DEPTHS[:1]:
                for pattern in FREE if "free(i)" in str(tried) else FREE[:1]:
                    free = Flags(partial(answers, pattern))
                    words = f"n = {lengths[0]}, then {lengths[1]}; R = {slots}; D = {others}; free = {pattern}"
                    yield words, unroll(called(tried, runs, slots, others, free))


def called(tried: Body, runs: Sequence[Runs], slots: Sequence[int], others: Sequence[int], free: Flags) -> tuple[Scheme, ...]:
    """A call of a body for each of these transfers, with the depths of each."""
    depths = zip(runs, slots, others, strict=True)
    return tuple(function(tried)(runs=one, slots=r, others=d, enough=ENOUGH, free=free) for one, r, d in depths)


def races_of(tried: Body) -> dict[str, Raced]:
    """One race for each kind that is found, by the name of the query about it."""
    found: dict[str, Raced] = {}
    for instance, program in instances(tried):
        for race in races(program):
            first, second = program[race.first], program[race.second]
            later = " of a later call" if first.call < second.call else ""
            found.setdefault(f"{_word(first)}[i] and {_word(second)}[j]{later}", Raced(instance, program, race))
    return found


def _word(issued: Issued) -> str:
    return f"{type(issued.operation).__name__} of {issued.phase}"


def queries_of(tried: Body) -> list[Query]:
    return list(t1_no_hazard.queries(function(tried)))


def ruled_out(query: Query) -> bool:
    """Whether the solver rules a query out: its doubt, or its premise already."""
    solver = z3.Solver(ctx=query.negated_goal.ctx)
    solver.set("rlimit", BUDGET)
    solver.add(*query.facts, query.premise, query.negated_goal)
    return bool(solver.check() == z3.unsat)


def widened(query: Query, reach: int) -> Query:
    """The query with a window of that reach, or as wide as it gets."""
    return widened(query.strengthened(), reach - 1) if reach and query.strengthened else query


def false_proof(tried: Body, reach: int) -> str | None:
    """The race of a body that the solver rules out, with its schedule."""
    raced = races_of(tried)
    queries = queries_of(tried) if raced else []
    for name, race in raced.items():
        if all(ruled_out(widened(query, reach)) for query in queries if query.name == name):
            return f"ruled out: {name}; and yet, {race}"
    return None


def left_open(queries: Iterable[Query], reach: int = 0) -> str | None:
    """The name of the first query that stays open, however far its window is widened, from a reach on."""
    for narrow in queries:
        query = widened(narrow, reach)
        while not ruled_out(query):
            if query.strengthened is None:
                return query.name
            query = query.strengthened()
    return None


@dataclass
class Hunted:
    """What came of a hunt: how many bodies got which verdict, and the bodies that are open, with what is open."""

    seen: Counter[Verdict] = field(default_factory=Counter)
    open: list[tuple[int, Body, str]] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {verdict.value}" for verdict, number in self.seen.items())
        return "\n".join(
            [f"{self.seen.total()} bodies: {counts}", *(f"seed {seed}: open: {name}: {tried}" for seed, tried, name in self.open)]
        )


def hunt(seeds: range, reach: int = t1_no_hazard.REACH) -> Hunted:
    """The verdicts on T1 of the bodies of some seeds. A race that is ruled out fails the test."""
    hunted = Hunted()
    for seed in seeds:
        tried = body(seed)
        if races_of(tried):
            wrong = false_proof(tried, reach)
            if wrong is not None:
                small = reduced(tried, lambda other: false_proof(other, reach) is not None)
                pytest.fail(f"seed {seed}: {wrong}\nthe body: {tried}\nreduced: {small}\n{false_proof(small, reach)}")
            hunted.seen[REFUTED] += 1
            continue
        queries = queries_of(tried)
        name = left_open(queries)
        hunted.seen[UNKNOWN if name else PROVED if queries else VACUOUS] += 1
        if name:
            hunted.open.append((seed, tried, name))
    return hunted


def smallest_open(tried: Body) -> Body:
    """A body that does not race and is open, reduced."""
    return reduced(tried, lambda other: not races_of(other) and left_open(queries_of(other)) is not None)


def test_no_race_of_a_random_loop_is_ruled_out() -> None:
    hunted = hunt(range(6), reach=1)
    print(hunted)
    assert hunted.seen[PROVED] >= 1
    assert hunted.seen[REFUTED] >= 1


@pytest.mark.extended
@pytest.mark.parametrize("part", range(8))
def test_no_race_of_many_random_loops_is_ruled_out(part: int) -> None:
    hunted = hunt(range(1000 + 30 * part, 1030 + 30 * part))
    print(hunted)
    for _, tried, name in hunted.open[:1]:
        print("reduced:", name, smallest_open(tried))
    assert hunted.seen[PROVED] >= 2
    assert hunted.seen[REFUTED] >= 2


# -- a hunter that catches nothing proves nothing

TWO_STREAMS = Body((Line("fetch"), Line("record"), Line("up", stream="b"), Line("record", stream="b"), Line("hwait"), Line("take")))
"""The event is recorded on b last, so its wait says nothing of the copy on a."""
UNWAITED = Body((Line("fetch"), Line("take"), Line("sync")))


def test_a_prover_that_counts_every_record_of_an_event_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert races_of(TWO_STREAMS)
    assert false_proof(TWO_STREAMS, reach=1) is None
    monkeypatch.setattr(scheme_model.SchemeModel, "on_one_stream", lambda scheme, record: True)
    assert "ruled out: Copy of loop[i] and HostCopy of loop[j]" in str(false_proof(TWO_STREAMS, reach=1))


def test_a_prover_with_a_wrong_axiom_is_caught_and_its_loop_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_at_issue(first: Operation, second: Operation) -> Iterator[Edge]:
        yield from axioms.edges(first, second)
        yield Edge("A1", Moment.END, Moment.ISSUE)

    assert false_proof(UNWAITED, reach=0) is None
    monkeypatch.setattr(window, "edges", ends_at_issue)
    small = reduced(UNWAITED, lambda other: false_proof(other, reach=0) is not None)
    assert [line.kind for line in small.lines] == ["fetch", "take"]
    monkeypatch.setattr(f"{__name__}.body", lambda seed: UNWAITED)
    with pytest.raises(pytest.fail.Exception, match="seed 7: ruled out: Copy of loop"):
        hunt(range(7, 8), reach=0)


TURNED = (Line("hwait", aim="i - R"), Line("fill", slot="(k + 1) % R"), Line("store", slot="(k + 1) % R"), Line("record"))
"""Which event a slot has follows from the depth: in calls of other depths it is another one."""


def test_a_prover_with_one_depth_for_all_calls_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Body(TURNED)
    assert "of a later call" in str(list(races_of(tried)))
    assert false_proof(tried, reach=1) is None
    monkeypatch.setattr(scheme_model, "same_in_all_calls", lambda function: frozenset({"slots", "others", "enough"}))
    assert "ruled out: Copy of loop[i] and HostCopy of loop[j] of a later call" in str(false_proof(tried, reach=1))
