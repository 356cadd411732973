"""What a scheme may not be if it is to be judged: each is refused by name, and its right twin is taken."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Annotated, Any

import pytest
import z3

from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.language.operations import (
    Copy,
    Event,
    HostWrite,
    Launch,
    Operation,
    SyncEvent,
    SyncStream,
)
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Direction, Result, Scheme
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel
from tests.support.loops import WAIT, Place, loop

STAGE = Buffer("stage", Memory.PINNED, 8, 8)


def stateful(every: int) -> SchemeFunction:
    """Waits at every so many-th step that is run: it counts, instead of looking at i."""

    def scheme(runs: Runs) -> Scheme:
        turn = [0]

        def step(place: Place, i: int) -> Iterator[Operation]:
            turn[0] += 1
            yield place.scribble(i)
            yield place.store(i)
            if turn[0] % every:
                yield WAIT

        return loop(step)(runs=runs)

    return scheme


def slot_by_turn(runs: Runs) -> Scheme:
    turns = cache(count)  # it keeps one count where nobody can look

    def step(place: Place, i: int) -> Iterator[Operation]:
        yield place.scribble(i, next(turns()) % 2)

    return loop(step, slots=2)(runs=runs)


@pytest.mark.parametrize(("function", "what"), [(stateful(2), "an assignment to a part"), (slot_by_turn, "'cache' of functools")])
def test_a_step_that_keeps_a_state_is_refused(function: SchemeFunction, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        SchemeModel(function)


def test_a_list_of_rows_is_refused_by_name() -> None:
    def lists(runs: Runs) -> Scheme:
        return Scheme("lists", (STAGE,), runs.number, lambda i: [Launch("a", reads=[STAGE.at(0, 0, 1)])])  # type: ignore[arg-type]

    with pytest.raises(UnsupportedError, match="a Launch whose reads is a list, which may change: make it a tuple"):
        SchemeModel(lists)


@pytest.mark.parametrize(
    ("buffers", "wrong"),
    [
        ((), "lists 0 times"),
        ((STAGE, STAGE), "lists 2 times"),
        ((replace(STAGE, rows=4),), "lists with other sizes"),
        ((replace(STAGE, memory=Memory.DEVICE),), "lists with other sizes"),
    ],
)
def test_a_buffer_that_the_scheme_does_not_list_as_it_is_used_is_refused(buffers: tuple[Buffer, ...], wrong: str) -> None:
    """The library gives a scheme the buffers that it lists: bounds proved of others would say nothing."""

    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("unlisted", buffers, n, lambda i: [HostWrite(STAGE.at(0, 0, 1))])

    with pytest.raises(UnsupportedError, match=wrong):
        SchemeModel(scheme)


@pytest.mark.parametrize("number", [True, 0.5, "0", None])
def test_rows_that_are_no_numbers_are_refused(number: Any) -> None:
    """A truth as a slot compares by identity: two steps would never touch a common row."""

    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("truth", (STAGE,), n, lambda i: [HostWrite(STAGE.at(number, 0, 1))])

    with pytest.raises(UnsupportedError, match="must be integers"):
        SchemeModel(scheme)


def test_the_truth_of_a_comparison_is_no_slot_and_a_raw_term_is_no_value() -> None:
    raw = z3.Int("raw")

    def truth(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("truth", (STAGE,), n, lambda i: [HostWrite(STAGE.at(i % 2 == 0, 0, 1))])

    def term(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("term", (STAGE,), n, lambda i: [HostWrite(STAGE.at(raw, 0, 1))])

    with pytest.raises(UnsupportedError, match="must be integers"):
        SchemeModel(truth)
    with pytest.raises(UnsupportedError, match="'raw' is of type ArithRef, which can change"):
        SchemeModel(term)


class Own(Scheme):
    """A scheme whose parts are others than those that the library runs."""


class Mine(Copy):
    """A kind of operation of one's own."""


class Wide(Rows):
    """Rows of one's own."""


def test_what_is_of_a_class_of_its_own_is_refused() -> None:
    def own(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Own("own", (STAGE,), n, lambda i: [HostWrite(STAGE.at(0, 0, 1))])

    def kind(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("kind", (STAGE,), n, lambda i: [Mine("a", STAGE.at(0, 0, 1), STAGE.at(1, 0, 1))])

    def rows(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("rows", (STAGE,), n, lambda i: [HostWrite(Wide(STAGE, 0, 0, 1))])

    for function, what in (
        (own, "returns a Own: return a Scheme"),
        (kind, "a Mine is a kind of operation"),
        (rows, "rows of a class"),
    ):
        with pytest.raises(UnsupportedError, match=what):
            SchemeModel(function)


@pytest.mark.parametrize("call", [1, True, None])
def test_an_event_that_says_its_call_is_refused(call: Any) -> None:
    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("calls", (STAGE,), n, lambda i: [SyncEvent(Event("e", 0, call))])

    with pytest.raises(UnsupportedError, match="a SyncEvent of event 'e' says of which call it is: leave `call` out"):
        SchemeModel(scheme)


def sized(slots: Callable[[int], int], rows: Callable[[int, Runs], int]) -> SchemeFunction:
    """A scheme whose staging buffer is as large as a number or a transfer says."""

    def scheme(n: Annotated[int, AtLeast(1)], runs: Runs) -> Scheme:
        stage = Buffer("stage", Memory.PINNED, slots(n), rows(n, runs))
        return Scheme("sized", (stage,), n, lambda i: [HostWrite(stage.at(0, 0, 1))])

    return scheme


@pytest.mark.parametrize(
    "rows", [lambda n, runs: 2 if n > 5 else 1, lambda n, runs: runs.length, lambda n, runs: min(runs.length, 4)]
)
def test_slots_that_lie_elsewhere_in_another_call_are_refused(rows: Callable[[int, Runs], int]) -> None:
    with pytest.raises(UnsupportedError, match="a slot of buffer 'stage' has other rows in one call than in another"):
        SchemeModel(sized(lambda n: 2, rows))
    assert SchemeModel(sized(lambda n: 1, rows)).names == ("loop",)


@pytest.mark.parametrize(
    ("slots", "rows"),
    [
        (lambda n: n, lambda n, runs: runs.longest),
        (lambda n: 2, lambda n, runs: n),
        (lambda n: 2, lambda n, runs: min(n, 4)),
        (lambda n: 2 if n > 5 else 3, lambda n, runs: 4),
    ],
)
def test_slots_that_stay_are_taken(slots: Callable[[int], int], rows: Callable[[int, Runs], int]) -> None:
    assert SchemeModel(sized(slots, rows)).names == ("loop",)


def test_what_is_no_operation_is_refused() -> None:
    def scheme(n: Annotated[int, AtLeast(1)]) -> Scheme:
        return Scheme("odd", (STAGE,), n, lambda i: [STAGE])  # type: ignore[list-item]

    with pytest.raises(UnsupportedError, match="no operation"):
        SchemeModel(scheme)


def test_phases_must_not_depend_on_the_arguments() -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        return Scheme("odd", (STAGE,), n, lambda i: [], (SyncStream("a"),) if n > 2 else ())

    with pytest.raises(UnsupportedError, match="phases"):
        SchemeModel(scheme)


def test_a_promise_of_another_shape_on_some_path_is_refused() -> None:
    def scheme(n: Annotated[int, AtLeast(0)]) -> Scheme:
        direction = Direction.READ if n > 2 else Direction.WRITE
        result = Result(direction, STAGE, STAGE, n, lambda p: (0, p), lambda p: p)
        return Scheme("odd", (STAGE,), n, lambda i: [], result=result)

    model = SchemeModel(scheme)
    with pytest.raises(UnsupportedError, match="another shape"):
        model.value(model.world.integer("call"), lambda scheme: (scheme.result and scheme.result.direction,))
