"""Random schedules: the same from the same seed, and unlike each other."""

from functools import partial

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostRead
from kvstage_model.schedules.drivers import exhaustive
from kvstage_model.schedules.schedule import Move
from kvstage_model.schedules.seeded import LARGEST_SEED, Seeded, draw_seed, seeded
from tests.support.programs import Log, issued, run

STAGE = Buffer("stage", Memory.PINNED, 1, 2)
A, B = STAGE.at(0, 0, 1), STAGE.at(0, 1, 1)
PROGRAM = issued([Copy("one", A, B), Copy("two", A, B), HostRead(A), Copy("one", B, A)])
MOVES = (Move(None), Move("one", 0, 0), Move("two", 1, 0))


def logs(seed: int, runs: int) -> list[Log]:
    return [log for _, log in seeded(partial(run, PROGRAM), seed, runs)]


def test_one_seed_gives_the_same_runs_again() -> None:
    assert logs(7, 20) == logs(7, 20)


def test_runs_and_seeds_differ() -> None:
    assert logs(7, 20) != logs(8, 20)
    assert len({str(log) for log in logs(7, 20)}) > 5


def test_draws_are_the_same_on_every_machine() -> None:
    schedule = Seeded(1, 2)
    assert [MOVES.index(schedule.choose(MOVES)) for _ in range(12)] == [0, 1, 2, 1, 2, 2, 2, 1, 1, 1, 2, 1]


def test_it_reaches_every_schedule_of_a_small_program() -> None:
    small = PROGRAM[:3]
    every = {str(log) for _, log in exhaustive(partial(run, small))}
    assert len(every) > 10
    assert {str(log) for _, log in seeded(partial(run, small), 0, 1500)} == every


def test_a_stream_may_fall_far_behind() -> None:
    """Twenty copies of the other stream end before this one begins: one in a million with draws of equal chances."""
    behind = issued([Copy("one", A, B), *[Copy("two", A, B)] * 20])
    last = [[label for label, _ in log][-2:] for _, log in seeded(partial(run, behind), 3, 100)]
    assert ["0", "0"] in [[str(label) for label in labels] for labels in last]


def test_a_name_says_seed_and_run() -> None:
    assert [str(schedule) for schedule, _ in seeded(lambda schedule: None, 5, 2)] == ["seed 5, run 0", "seed 5, run 1"]


def test_a_drawn_seed_is_a_new_one() -> None:
    drawn = {draw_seed() for _ in range(8)}
    assert len(drawn) > 1
    assert all(0 <= seed < LARGEST_SEED for seed in drawn)


@pytest.mark.parametrize("moves", [MOVES, MOVES[:1], MOVES[1:]])
def test_it_chooses_one_of_the_moves(moves: tuple[Move, ...]) -> None:
    schedule = Seeded(0, 0)
    assert all(schedule.choose(moves) in moves for _ in range(50))
