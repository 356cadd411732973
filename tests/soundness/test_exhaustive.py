"""Rings and gathers of each small depth: the prover, the race finder and the machine under every schedule agree.

The solver alone speaks for the prover: it proves a scheme exactly where no instance races, of enough rows to use
every slot again. And an instance races exactly where some schedule of the machine delivers a wrong row.
"""

from collections.abc import Iterator
from functools import partial
from types import MappingProxyType

import pytest

from kvstage_model.language.edits import edited, without
from kvstage_model.language.operations import Operation
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Declared, SchemeFunction, declared
from kvstage_model.language.partitions import Runs, by_block, by_chunk, by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering import axioms
from kvstage_model.ordering.axioms import Edge, Moment
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore, races
from kvstage_model.schedules.drivers import TooManySchedulesError, delays, exhaustive
from kvstage_model.schemes.gather import gather_read, gather_write
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_model.simulation.simulator import simulate
from kvstage_model.symbolic import window
from kvstage_proofs.solvers.query import Query
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.t1_no_hazard import REACH, T1
from kvstage_proofs.theorems.t5_removals import named
from tests.support.programs import total
from tests.support.tiers import often

FUNCTIONS = MappingProxyType(
    {"ring_read": ring_read, "ring_write": ring_write, "gather_read": gather_read, "gather_write": gather_write}
)
RINGS = [(name, (slots,)) for name in ("ring_read", "ring_write") for slots in range(1, 6)]
GATHERS = [(name, (d, h)) for name in ("gather_read", "gather_write") for d in (1, 2) for h in (1, 2)]
UNEQUAL = [("gather_read", (2, 1)), ("gather_write", (1, 2))]
OFTEN = [(name, depths) for name, depths in RINGS if depths[0] in (1, 2, 5)]
MOST_SCHEDULES = 60
"""Of a test that is run each time. All of them where there are no more; with each half of each copy held back in any case."""


def fixed(name: str, depths: tuple[int, ...]) -> SchemeFunction:
    """A scheme of these depths, over any runs or pieces."""
    parts, *slots = declared(FUNCTIONS[name])
    values = {parameter.name: depth for parameter, depth in zip(slots, depths, strict=True)}
    function, fixed_at = FUNCTIONS[name], MappingProxyType(values)
    return Declared(lambda **arguments: function(**arguments, **fixed_at), (parts,))


def instances(function: SchemeFunction, most: int) -> Iterator[tuple[int, tuple[Scheme, ...]]]:
    """Transfers of up to so many rows, with their number of rows: in parts of one row and of two, one call and two."""
    (parts,) = declared(function)
    table = total([3, 1, 0, 2, *range(4, 4 + most)])
    for rows in range(1, most + 1):
        single, double = (PagedRows(table, 4 + most, size, 0, rows) for size in (1, 2))
        cuts = (by_row(single), by_block(double)) if parts.kind is Runs else (by_chunk(double, 1), by_chunk(double, 2))
        for scheme in (function(**{parts.name: cut}) for cut in cuts):
            yield rows, (scheme,)
            yield rows, (scheme, scheme)


def racing(calls: tuple[Scheme, ...]) -> bool:
    return next(races(unroll(calls)), None) is not None


def rows_of_a_race(function: SchemeFunction, most: int) -> int | None:
    """How many rows the smallest transfer has that races."""
    return next((rows for rows, calls in instances(function, most) if racing(calls)), None)


def proved(function: SchemeFunction, widenings: int) -> bool:
    """Whether the solver alone refutes every doubt, with more facts for so many times where they do not suffice."""
    proofs = 0
    for query in T1.of(function, "x").queries():
        if not refuted(query, widenings):
            return False
        proofs += 1
    return proofs > 0


def refuted(query: Query, widenings: int) -> bool:
    answer = ask(query)
    while answer.open and query.strengthened is not None and widenings:
        query, widenings = query.strengthened(), widenings - 1
        answer = ask(query)
    return not answer.open


def goes_wrong(calls: tuple[Scheme, ...], most: int) -> bool:
    """Whether a wrong row comes of the calls with a half of some copy held back, or under any schedule."""
    run = partial(simulate, calls)
    if any(simulation.wrong for _, simulation in delays(run)):
        return True
    try:
        return any(simulation.wrong for _, simulation in exhaustive(run, most))
    except TooManySchedulesError:
        return False


def prover_and_race_finder_agree(function: SchemeFunction, depths: tuple[int, ...], widenings: int = REACH) -> bool:
    """Whether it never races, and so is proved. What races must not be, with facts added so many times."""
    fewest = rows_of_a_race(function, max(depths) + 2)
    found = T1.of(function, "x").search(None)
    assert (found is not None) == (fewest is not None)
    assert proved(function, REACH if fewest is None else widenings) == (fewest is None)
    return fewest is None


def race_finder_and_machine_agree(function: SchemeFunction, most_rows: int, most_schedules: int = MOST_SCHEDULES) -> int:
    """Instances race exactly where a schedule gives a wrong row. How many instances were compared."""
    compared = 0
    for _, calls in instances(function, most_rows):
        assert goes_wrong(calls, most_schedules) == racing(calls), f"{calls[0].name}, {calls[0].steps} steps, {len(calls)} calls"
        compared += 1
    return compared


def variants(name: str, depths: tuple[int, ...]) -> Iterator[tuple[str, SchemeFunction]]:
    """The scheme without each of its waits and records."""
    function = fixed(name, depths)
    for removed in named(function):
        yield str(removed), edited(function, without(removed))


def harmless(name: str, depths: tuple[int, ...], widenings: int) -> set[str]:
    """The waits and records without which the scheme never races, and is proved."""
    return {
        removed for removed, without_it in variants(name, depths) if prover_and_race_finder_agree(without_it, depths, widenings)
    }


def needless(name: str, depths: tuple[int, ...]) -> set[str]:
    """What is known to be harmless: a reading gather whose device ring is no shallower than its pinned one packs no slot early."""
    deep = name == "gather_read" and depths[0] >= depths[1]
    return {"WaitEvent of 'free' on stream compute", "RecordEvent of 'free' on stream copy"} if deep else set()


@pytest.mark.parametrize(("name", "depths"), often([*RINGS, *UNEQUAL], 4))
def test_a_right_scheme_of_each_depth_is_proved_and_never_races(name: str, depths: tuple[int, ...]) -> None:
    assert prover_and_race_finder_agree(fixed(name, depths), depths)


@pytest.mark.parametrize(("name", "depths"), often([*OFTEN, *UNEQUAL], 3))
def test_one_that_lost_a_wait_or_a_record_is_proved_where_it_never_races(name: str, depths: tuple[int, ...]) -> None:
    assert harmless(name, depths, widenings=0) == needless(name, depths)


@pytest.mark.parametrize(("name", "depths"), often([*RINGS[:3], *RINGS[5:8], *UNEQUAL], 3))
def test_a_race_is_where_a_schedule_gives_a_wrong_row(name: str, depths: tuple[int, ...]) -> None:
    for _, function in (("", fixed(name, depths)), *variants(name, depths)):
        assert race_finder_and_machine_agree(function, max(depths) + 1) >= 8


def ends_at_issue(first: Operation, second: Operation) -> Iterator[Edge]:
    """A wrong axiom: a copy has ended when the host goes on."""
    yield from axioms.edges(first, second)
    yield Edge("wrong", Moment.END, Moment.ISSUE)


def test_a_prover_with_a_wrong_axiom_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "edges", ends_at_issue)
    with pytest.raises(AssertionError, match="True = proved"):
        harmless("ring_read", (2,), widenings=0)


def test_a_race_finder_that_sees_every_pair_ordered_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HappensBefore, "ordered", lambda *_: True)
    _, without_the_record = next(variants("ring_read", (2,)))
    with pytest.raises(AssertionError, match="ring read without RecordEvent"):
        race_finder_and_machine_agree(without_the_record, 3)


@pytest.mark.extended
@pytest.mark.parametrize(("name", "depths"), [*RINGS, *GATHERS])
def test_all_of_them_agree_with_every_widening(name: str, depths: tuple[int, ...]) -> None:
    assert prover_and_race_finder_agree(fixed(name, depths), depths)
    assert harmless(name, depths, REACH) == needless(name, depths)


@pytest.mark.extended
@pytest.mark.parametrize(("name", "depths"), [*RINGS, *GATHERS])
def test_a_race_is_where_one_of_many_schedules_gives_a_wrong_row(name: str, depths: tuple[int, ...]) -> None:
    for _, function in (("", fixed(name, depths)), *variants(name, depths)):
        assert race_finder_and_machine_agree(function, max(depths) + 1, 600) >= 8
