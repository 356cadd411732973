"""What a step may use: every way to keep a state or to look at objects is refused by name and line, and honest text is not."""

from collections.abc import Callable, Iterator
from typing import Annotated

import pytest

from kvstage_model import language, schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostWrite, Operation, SyncStream
from kvstage_model.language.parameters import Declared
from kvstage_model.language.ranges import AtLeast
from kvstage_model.language.scheme import Scheme
from kvstage_model.symbolic import scheme_model
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.purity import demand_pure
from kvstage_model.symbolic.scheme_model import SchemeModel
from tests.support.impure import IMPURE, MAKERS, Late
from tests.support.pure import PURE

PIN, DEV = Buffer("pin", Memory.PINNED, 1, 1), Buffer("dev", Memory.DEVICE, 1, 1)


def turning(late: Late) -> Callable[..., Scheme]:
    """A loop that waits no longer once `late` says so."""

    def scheme(turns: Annotated[int, AtLeast(0)]) -> Scheme:
        def step(i: int) -> Iterator[Operation]:
            yield HostWrite(PIN.at(0, 0, 1))
            yield Copy("s", PIN.at(0, 0, 1), DEV.at(0, 0, 1))
            if not late(i):
                yield SyncStream("s")

        return Scheme("late", (PIN, DEV), turns, step, (SyncStream("s"),))

    return scheme


def making(make: Callable[[], Late]) -> Callable[..., Scheme]:
    """The same, whose state is made anew in each call."""

    def scheme(turns: Annotated[int, AtLeast(0)]) -> Scheme:
        return turning(make())(turns)

    return scheme


@pytest.mark.parametrize("late", IMPURE.values(), ids=IMPURE)
def test_what_is_no_function_of_the_step_is_refused_with_its_line(late: Late) -> None:
    with pytest.raises(UnsupportedError, match=r"^[\w/.<>]+:\d+: .+") as refused:
        SchemeModel(turning(late))
    assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_state_that_each_call_makes_is_refused_with_its_line(make: Callable[[], Late]) -> None:
    with pytest.raises(UnsupportedError, match=r"^[\w/.<>]+:\d+: .+"):
        SchemeModel(making(make))


@pytest.mark.parametrize("late", PURE.values(), ids=PURE)
def test_what_is_one_is_taken(late: Late) -> None:
    assert SchemeModel(turning(late)).names == ("loop", "epilogue")


def test_without_the_reading_they_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_model, "demand_pure", lambda value: None)
    for late in ("list_only_read", "clock", "kind_of_a_number", "identity_of_a_number"):
        assert SchemeModel(turning(IMPURE[late])).names == ("loop", "epilogue")
    assert SchemeModel(making(MAKERS["list_around"])).names == ("loop", "epilogue")


@pytest.mark.parametrize("name", sorted({*schemes.__all__} & {*vars(schemes)}))
def test_the_librarys_own_loops_are_read_like_any_other(name: str) -> None:
    function = getattr(schemes, name)
    if callable(function) and not isinstance(function, type):
        demand_pure(function)


def test_a_method_of_the_language_that_somebody_replaced_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    right = Buffer.at

    def counted(buffer: Buffer, slot: int, start: int, count: int) -> language.Rows:
        seen.append(slot)
        return right(buffer, slot, start, count)

    SchemeModel(turning(PURE["comparison"]))
    monkeypatch.setattr(Buffer, "at", counted)
    with pytest.raises(UnsupportedError, match=r"test_purity.py:\d+: 'seen' is a list, which can change: make it a tuple"):
        SchemeModel(turning(PURE["comparison"]))


def test_an_edit_is_read_like_a_step() -> None:
    done: list[int] = []

    right = turning(PURE["comparison"])

    def edited(**arguments: int) -> Scheme:
        return right(**arguments).changed(lambda issued: (one for one in issued if not done), "edited")

    declared = Declared(edited, ())
    with pytest.raises(UnsupportedError, match="'done' is a list"):
        demand_pure(declared)
