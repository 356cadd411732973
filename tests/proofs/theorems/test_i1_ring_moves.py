"""The moves that the induction is over are those of the machine that the simulator runs, seen from each slot."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.language.operations import RecordEvent, SyncEvent
from kvstage_model.language.scheme import Direction
from kvstage_model.schemes.ring import ring_read, ring_write
from kvstage_proofs.theorems.i1_ring_moves import HOST, STREAM, implies, moves
from kvstage_proofs.theorems.i1_ring_text import Ring, ring_of
from tests.support.rings import BROKEN, OVER_WAITING, RIGHT
from tests.support.watching import allowed, altered, disagreement, watched

EVERY = {**RIGHT, **BROKEN, **OVER_WAITING}


@pytest.mark.parametrize("direction", RIGHT)
def test_the_machine_moves_as_the_proof_says(direction: str) -> None:
    """What happened is allowed, and who could move could by the proof: together the slots know when the host is blocked."""
    ring, seen = ring_of(RIGHT[direction]), []

    @settings(max_examples=100, deadline=None)
    @given(st.integers(0, 10**6))
    def runs(seed: int) -> None:
        watch = watched(RIGHT[direction], ring, seed, calls=2)
        assert disagreement(ring, watch) is None
        seen.extend(happened.agent for happened in watch.happened)
        blocked.extend(offered for offered in watch.offered if not offered.host)

    blocked: list[object] = []
    runs()
    assert {HOST, STREAM} <= set(seen)
    assert len(seen) > 500
    assert len(blocked) > 20, "the host was made to wait"


@pytest.mark.parametrize("name", [*BROKEN, *OVER_WAITING])
def test_so_does_a_machine_that_runs_a_wrong_ring(name: str) -> None:
    ring = ring_of(EVERY[name])
    assert [disagreement(ring, watched(EVERY[name], ring, seed)) for seed in range(12)] == [None] * 12


@pytest.mark.extended
@pytest.mark.parametrize("name", EVERY)
def test_the_machine_moves_as_the_proof_says_in_many_runs(name: str) -> None:
    ring = ring_of(EVERY[name])
    for seed in range(1000, 1600):
        found = disagreement(ring, watched(EVERY[name], ring, seed, calls=2 if name in RIGHT else 1))
        assert found is None, f"seed {seed}: {found}"


def wrong_in_one_act(ring: Ring, kind: type, aside: int) -> Ring:
    return replace(ring, acts=tuple(replace(act, aside=aside) if act.kind is kind else act for act in ring.acts))


READ, WRITE = ring_of(ring_read), ring_of(ring_write)
MISREAD = {
    "no wait": (ring_read, replace(READ, acts=tuple(act for act in READ.acts if act.kind is not SyncEvent))),
    "a wait for the next slot": (ring_read, wrong_in_one_act(READ, SyncEvent, 1)),
    "a record for the next slot": (ring_write, wrong_in_one_act(WRITE, RecordEvent, 1)),
    "copies the other way": (ring_write, replace(WRITE, direction=Direction.READ)),
    "no wait at the end": (ring_write, replace(WRITE, waits_at_end=False)),
    "one step less": (ring_read, replace(READ, steps=replace(READ.steps, more=-2))),
}


@pytest.mark.parametrize("mistake", MISREAD)
def test_moves_of_another_ring_are_told_from_the_machines(mistake: str) -> None:
    function, ring = MISREAD[mistake]
    assert any(disagreement(ring, watched(function, ring_of(function), seed)) is not None for seed in range(20))


@pytest.mark.parametrize("direction", RIGHT)
def test_a_state_with_another_number_is_no_successor(direction: str) -> None:
    ring, random, refused = ring_of(RIGHT[direction]), Random(7), 0
    for seed in range(20):
        for happened in watched(RIGHT[direction], ring, seed).happened:
            for before, after in zip(happened.before, happened.after, strict=True):
                assert allowed(ring, happened.agent, before, after)
                assert not allowed(ring, happened.agent, before, altered(after, random))
                refused += 1
    assert refused > 500


@pytest.mark.parametrize("direction", RIGHT)
def test_nobody_else_makes_the_move(direction: str) -> None:
    ring = ring_of(RIGHT[direction])
    for seed in range(20):
        for happened in watched(RIGHT[direction], ring, seed).happened:
            for before, after in zip(happened.before, happened.after, strict=True):
                able = [agent for agent in (HOST, STREAM, None) if allowed(ring, agent, before, after)]
                assert able == [happened.agent]


@pytest.mark.parametrize("direction", RIGHT)
def test_nobody_has_two_moves(direction: str) -> None:
    ring = ring_of(RIGHT[direction])
    for seed in range(10):
        for happened in watched(RIGHT[direction], ring, seed).happened:
            for state in happened.after:
                streams = [move for move in moves(ring) if move.agent == STREAM and move.may(state)]
                hosts = [move for move in moves(ring) if move.agent != STREAM and move.may(state)]
                assert len(streams) <= 1
                assert len(hosts) <= 1


def test_implication() -> None:
    table = [(premise, conclusion) for premise in (False, True) for conclusion in (False, True)]
    assert [implies(*row) for row in table] == [True, True, False, True]
