"""T1 on small loops whose verdict is plain to see."""

from collections.abc import Iterator

import pytest

from kvstage_model.language.operations import Copy, HostCopy, HostRead, Operation, SyncStream
from kvstage_model.language.scheme import Direction
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1, queries
from tests.support.loops import WAIT, Body, Place, loop, staged, stored
from tests.support.tiers import often

PROVED, REFUTED, VACUOUS, UNKNOWN, *_ = Verdict
READ, WRITE = Direction.READ, Direction.WRITE


def no_wait(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield place.take(i)


def wait_behind(place: Place, i: int) -> Iterator[Operation]:
    yield from no_wait(place, i)
    yield WAIT


def wrong_stream(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i)
    yield SyncStream("another")
    yield place.take(i)


def overwrites_a_copys_source(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    yield place.store(i)


def two_slots_one_wait_a_step_late(place: Place, i: int) -> Iterator[Operation]:
    """A slot is used again after two steps, and the wait one step later covers it: safe."""
    if i >= 1:
        yield WAIT
    yield place.scribble(i, i % 2)
    yield place.store(i, i % 2)


def two_slots_never_waiting(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i, i % 2)
    yield place.store(i, i % 2)


def two_streams_into_one_slot(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i, 0, "a")
    yield Copy("b", place.scratched(i), place.staged(i))


def one_stream_into_one_slot(place: Place, i: int) -> Iterator[Operation]:
    yield place.fetch(i, 0, "a")
    yield Copy("a", place.scratched(i), place.staged(i))


def reads_only(place: Place, i: int) -> Iterator[Operation]:
    yield Copy("a", place.pooled(i), place.scratched(i))
    yield Copy("b", place.pooled(i), place.staged(i))
    yield HostRead(place.pooled(i))


def odd_steps_do_not_wait(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    yield place.store(i)
    if i % 2 == 0:
        yield WAIT


def last_step_does_not_wait(place: Place, i: int) -> Iterator[Operation]:
    yield place.scribble(i)
    yield place.store(i)
    if i < place.runs.number - 1:
        yield WAIT


CASES: dict[str, tuple[Body, Direction | None, int, tuple[Operation, ...], Verdict]] = {
    "copy, wait, take": (staged, READ, 1, (), PROVED),
    "fill, copy, wait": (stored, WRITE, 1, (), PROVED),
    "no wait": (no_wait, READ, 1, (), REFUTED),
    "a wait behind the use": (wait_behind, READ, 1, (), REFUTED),
    "a wait for another stream": (wrong_stream, READ, 1, (), REFUTED),
    "the host refills what is being copied": (overwrites_a_copys_source, None, 1, (), REFUTED),
    "two slots, the last copy left alone when the call returns": (two_slots_one_wait_a_step_late, None, 2, (), REFUTED),
    "two slots, and a wait after the loop": (two_slots_one_wait_a_step_late, None, 2, (WAIT,), PROVED),
    "two slots, no wait in the loop": (two_slots_never_waiting, None, 2, (WAIT,), REFUTED),
    "two streams, one slot": (two_streams_into_one_slot, None, 1, (WAIT,), REFUTED),
    "one stream, one slot": (one_stream_into_one_slot, None, 1, (), PROVED),
    "odd steps do not wait": (odd_steps_do_not_wait, None, 1, (WAIT,), REFUTED),
    "the last step does not wait": (last_step_does_not_wait, None, 1, (), REFUTED),
    "the last step does not wait, the epilogue does": (last_step_does_not_wait, None, 1, (WAIT,), PROVED),
}


@pytest.mark.parametrize(("body", "direction", "slots", "epilogue", "verdict"), often(CASES.values(), 8), ids=CASES.keys())
def test_the_verdict(
    body: Body, direction: Direction | None, slots: int, epilogue: tuple[Operation, ...], verdict: Verdict
) -> None:
    judgement = judge(T1.of(loop(body, slots=slots, direction=direction, epilogue=lambda place: epilogue), "loop"))
    assert judgement.verdict is verdict, judgement.reason
    if verdict is REFUTED:
        assert judgement.counterexample is not None
        assert judgement.counterexample.race is not None


def test_two_slots_across_two_calls_of_odd_length_meet() -> None:
    """The counterexample of the loop that waits a step late needs a second call."""
    judgement = judge(T1.of(loop(two_slots_one_wait_a_step_late, slots=2), "loop"))
    assert judgement.counterexample is not None
    assert "2 calls" in judgement.counterexample.values


def test_readers_alone_have_no_hazard_but_their_own_targets() -> None:
    names = [query.name for query in queries(loop(reads_only))]
    assert names
    assert not [name for name in names if "HostRead" in name]


def test_a_loop_without_accesses_is_vacuous() -> None:
    assert judge(T1.of(loop(lambda place, i: [WAIT]), "loop")).verdict is VACUOUS


def test_every_ordered_pair_of_phases_is_asked_about_in_one_call_and_in_two() -> None:
    def copies(place: Place, i: int) -> Iterator[Operation]:
        yield place.fetch(i)

    epilogue = loop(copies, epilogue=lambda place: (HostCopy(place.stage.at(0, 0, 1), place.scratch.at(0, 0, 1)),))
    assert [query.name for query in queries(epilogue)] == [
        "Copy of loop[i] and Copy of loop[j]",
        "Copy of loop[i] and HostCopy of epilogue[j]",
        "HostCopy of epilogue[i] and HostCopy of epilogue[j]",
        "Copy of loop[i] and Copy of loop[j] of a later call",
        "Copy of loop[i] and HostCopy of epilogue[j] of a later call",
        "HostCopy of epilogue[i] and Copy of loop[j] of a later call",
        "HostCopy of epilogue[i] and HostCopy of epilogue[j] of a later call",
    ]
