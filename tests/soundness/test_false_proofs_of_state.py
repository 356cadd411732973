"""False proofs of loops that do something else than they did while they were proved: each keeps a state, or looks at itself."""

import itertools
from array import array
from collections.abc import Callable, Iterator

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostWrite, Operation, SyncStream
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.scheme import Scheme
from kvstage_model.symbolic import purity as looking
from kvstage_model.symbolic import scheme_model, world
from kvstage_model.symbolic.purity import Kept
from kvstage_model.symbolic.world import World
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1

PROVED, UNSUPPORTED = Verdict.PROVED, Verdict.UNSUPPORTED
STAGE, POOL = Buffer("stage", Memory.PINNED, 9, 1), Buffer("pool", Memory.DEVICE, 9, 1)
LATE = 3_000
"""Steps after which a state counts: more than anybody runs while it proves."""


def turning(late: Callable[[list[int], int], object]) -> Declared:
    """A staging loop that waits no longer once `late`, of a list that the scheme keeps and of the step, says so."""

    def scheme(n: int) -> Scheme:
        done: list[int] = []

        def step(i: int) -> Iterator[Operation]:
            yield HostWrite(STAGE.at(0, 0, 1))
            yield Copy("s", STAGE.at(0, 0, 1), POOL.at(0, 0, 1))
            if not late(done, i):
                yield SyncStream("s")

        return Scheme("turning", (STAGE, POOL), n, step, (SyncStream("s"),))

    return Declared(scheme, (Parameter("n", int),))


def swallows(done: list[int], i: int) -> object:
    """Takes a refusal for an answer."""
    try:
        return [0, 1][i > 30]
    except Exception:  # noqa: BLE001 the mistake that is looked for
        return 0


def remembers(done: list[int], i: int) -> object:
    """Keeps a state that counts only in steps that no small instance has."""
    if i == 30:
        done.append(1)
    return i > 30 and bool(done)


def test_a_refusal_that_a_scheme_catches_is_one_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge(T1.of(turning(swallows), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert judgement.reason.startswith("the truth of a comparison can't do what a number can")
    monkeypatch.setattr(World, "demand_no_refusal", lambda world: None)
    assert judge(T1.of(turning(swallows), "loop")).verdict is PROVED


def test_a_state_that_counts_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge(T1.of(turning(remembers), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert judgement.reason.startswith("a step does something else when it runs again")
    monkeypatch.setattr(Kept, "changed", lambda kept: False)
    assert judge(T1.of(turning(remembers), "loop")).verdict is PROVED


def by_identity(done: list[int], i: int) -> object:
    """Is never so of a symbol."""
    return (i == 30) is True


def test_a_truth_by_identity_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge(T1.of(turning(by_identity), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert "of by_identity asks whether something `is True`" in judgement.reason
    monkeypatch.setattr(world, "demand_no_truth_by_identity", lambda code: None)
    assert judge(T1.of(turning(by_identity), "loop")).verdict is PROVED


def test_a_scheme_function_that_counts_its_calls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it asked often enough, its loop would lack the wait."""
    calls: list[int] = []

    def scheme(n: int) -> Scheme:
        calls.append(1)
        late = len(calls) > 10_000
        wait = () if late else (SyncStream("s"),)
        step = (HostWrite(STAGE.at(0, 0, 1)), Copy("s", STAGE.at(0, 0, 1), POOL.at(0, 0, 1)), *wait)
        return Scheme("counting", (STAGE, POOL), n, lambda i: step)

    counting = Declared(scheme, (Parameter("n", int),))
    judgement = judge(T1.of(counting, "loop"))
    assert (judgement.verdict, judgement.reason) == (UNSUPPORTED, scheme_model.COUNTING)
    monkeypatch.setattr(Kept, "changed", lambda kept: False)
    assert judge(T1.of(counting, "loop")).verdict is PROVED


class Counted:
    """Counts in its class."""

    steps = 0


class Slotted:
    """Counts in a slot."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


SLOTTED, NUMBERS, ROOM, COUNT = Slotted(), array("i", [0]), bytearray(1), itertools.count()


def in_the_class(done: list[int], i: int) -> object:
    Counted.steps += 1
    return Counted.steps > LATE


def in_the_function(done: list[int], i: int) -> object:
    in_the_function.steps += 1  # type: ignore[attr-defined]
    return in_the_function.steps > LATE  # type: ignore[attr-defined]


in_the_function.steps = 0  # type: ignore[attr-defined]


def in_a_slot(done: list[int], i: int) -> object:
    SLOTTED.steps += 1
    return SLOTTED.steps > LATE


def in_an_array(done: list[int], i: int) -> object:
    NUMBERS[0] += 1
    return NUMBERS[0] > LATE


def in_bytes(done: list[int], i: int) -> object:
    ROOM.append(0)
    return len(ROOM) > LATE


def in_an_iterator(done: list[int], i: int) -> object:
    return next(COUNT) > LATE


@pytest.mark.parametrize("late", [in_the_class, in_the_function, in_a_slot, in_an_array, in_bytes, in_an_iterator])
def test_a_state_is_found_wherever_it_is_kept(late: Callable[[list[int], int], object], monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge(T1.of(turning(late), "loop"))
    assert judgement.verdict is UNSUPPORTED
    assert judgement.reason.startswith(("a step does something else when it runs again", "a step reaches 'COUNT' (count)"))
    monkeypatch.setattr(Kept, "changed", lambda kept: False)
    monkeypatch.setattr(looking, "_demand_no_iterator", lambda value, held: None)
    assert judge(T1.of(turning(late), "loop")).verdict is PROVED
