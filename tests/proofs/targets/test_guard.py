"""Everything a user's code can do wrong is told as his mistake, with its line."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, CopyBatch, Event, Launch, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Declared, declared
from kvstage_model.language.partitions import Runs, by_row
from kvstage_model.language.scheme import Phase, Scheme, Session, once
from kvstage_model.schemes.staged import staged_read
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel
from kvstage_proofs.targets.guard import Guard, SchemeFileError

STAGE = Buffer("stage", Memory.PINNED, 2, 1)
ROW = STAGE.at(0, 0, 1)
GUARD = Guard("mine.py", __file__, "loop")
ONE_ROW = by_row(PagedRows(lambda _: 0, 1, 1, 0, 1))


def guarded(function: Callable[[Runs], Any]) -> Declared:
    return GUARD.scheme_function(function, declared(staged_read))


def looping(step: Callable[[int], Any], **fields: Any) -> Declared:
    return guarded(lambda runs: Scheme(**{"name": "loop", "buffers": (STAGE,), "steps": runs.number, "step": step, **fields}))


def yielding(*yielded: Any) -> Declared:
    return looping(lambda i: iter(yielded))


def line_of(function: Callable[..., object], below: int) -> int:
    return function.__code__.co_firstlineno + below


def gone(runs: Runs) -> Scheme:
    raise KeyError("gone")


def counting(runs: Runs) -> Scheme:
    return Scheme("loop", (), len(range(runs.number)), lambda i: ())


def test_without_the_guard_it_is_anybodys_exception_with_it_the_users() -> None:
    with pytest.raises(KeyError):
        SchemeModel(Declared(gone, declared(staged_read)))
    with pytest.raises(SchemeFileError, match=rf"^mine.py:{line_of(gone, 1)}: loop raises KeyError: 'gone'$"):
        SchemeModel(guarded(gone))


def in_a_session(step: Callable[[int], Any]) -> Declared:
    return guarded(lambda runs: Session.of("loop", (STAGE,), once("first", SyncStream("copy")), Phase("second", runs.number, step)))


def test_the_loops_of_a_session_are_guarded() -> None:
    def unbound(i: int) -> Iterator[Copy]:
        yield Copy("copy", ROW, ROW)
        raise ValueError("boom")

    def keyed(i: int) -> Iterator[Copy]:
        yield Copy("copy", ROW, {0: ROW}[i])

    with pytest.raises(SchemeFileError, match=rf"^mine.py:{line_of(unbound, 2)}: a step of loop raises ValueError: boom$"):
        SchemeModel(in_a_session(unbound))
    with pytest.raises(UnsupportedError, match=rf"^mine.py:{line_of(keyed, 1)}: a symbolic index is used as the key of a dict"):
        SchemeModel(in_a_session(keyed))
    with pytest.raises(SchemeFileError, match="yields 'wait', which is no operation"):
        in_a_session(lambda i: iter(["wait"]))(runs=ONE_ROW).phases[1].step(0)
    with pytest.raises(SchemeFileError, match="has a Phase whose step is None, not a function"):
        in_a_session(None)(runs=ONE_ROW)  # type: ignore[arg-type]
    with pytest.raises(SchemeFileError, match="returns a Session with a Buffer in it, not a Phase"):
        guarded(lambda runs: Session("loop", (STAGE,), 1, lambda i: (), parts=(STAGE,)))(runs=ONE_ROW)  # type: ignore[arg-type]
    assert [type(each) for each in in_a_session(lambda i: [Copy("copy", ROW, ROW)])(runs=ONE_ROW).phases[1].step(0)] == [Copy]


@pytest.mark.parametrize("name", ["address", "step", "host_address", "first"])
def test_each_function_of_a_result_is_guarded(name: str) -> None:
    def scheme(runs: Runs) -> Scheme:
        right = staged_read(runs)
        return replace(right, result=replace(right.result, **{name: lookup}))

    def lookup(position: int) -> Any:
        raise KeyError("place")

    with pytest.raises(
        SchemeFileError, match=rf"^mine.py:{line_of(lookup, 1)}: the {name} of loop's result raises KeyError: 'place'$"
    ):
        getattr(guarded(scheme)(runs=ONE_ROW).result, name)(0)
    with pytest.raises(SchemeFileError, match=f"returns a Result whose {name} is 3, not a function"):
        guarded(lambda runs: replace(staged_read(runs), result=replace(staged_read(runs).result, **{name: 3})))(runs=ONE_ROW)


def test_a_step_that_catches_a_refusal_is_refused_for_that() -> None:
    def swallows(i: int) -> Iterator[SyncStream]:
        try:
            late = [0, 1][i]
        except UnsupportedError:
            late = 0
        yield SyncStream("late" if late else "copy")

    with pytest.raises(UnsupportedError, match=rf"test_guard.py:{line_of(swallows, 1)}: swallows has a `try`"):
        SchemeModel(looping(swallows))


def test_an_event_of_a_call_is_told_with_its_line() -> None:
    def step(i: int) -> Iterator[SyncEvent]:
        yield SyncEvent(Event("sent"))
        yield SyncEvent(Event("sent", 0, 1))

    with pytest.raises(
        UnsupportedError, match=rf"^mine.py:{line_of(step, 2)}: a SyncEvent of event 'sent' says of which call it is"
    ):
        looping(step)(runs=ONE_ROW).step(0)


def test_what_is_unsupported_stays_so_and_gains_its_line() -> None:
    with pytest.raises(UnsupportedError, match=r"^a symbolic index is used as a concrete number"):
        SchemeModel(Declared(counting, declared(staged_read)))
    with pytest.raises(UnsupportedError, match=rf"^mine.py:{line_of(counting, 1)}: a symbolic index is used as a concrete number"):
        SchemeModel(guarded(counting))


def test_the_line_is_the_deepest_one_in_the_users_file() -> None:
    def step(i: int) -> Iterator[Copy]:
        yield Copy("copy", ROW, ROW)
        Buffer("too", Memory.PINNED)

    with pytest.raises(SchemeFileError, match=rf"^mine.py:{line_of(step, 2)}: a step of loop raises TypeError: .*missing"):
        looping(step)(runs=ONE_ROW).step(0)


def test_the_line_of_a_yield_that_gives_no_operation() -> None:
    def step(i: int) -> Iterator[object]:
        yield SyncStream("copy")
        yield "wait"

    with pytest.raises(SchemeFileError, match=rf"^mine.py:{line_of(step, 2)}: loop yields 'wait', which is no operation$"):
        looping(step)(runs=ONE_ROW).step(0)


def test_a_right_scheme_passes_unchanged() -> None:
    plain, passed = staged_read(ONE_ROW), guarded(staged_read)(runs=ONE_ROW)
    assert [type(operation) for operation in passed.step(0)] == [type(operation) for operation in plain.step(0)]
    assert (passed.steps, passed.buffers[1].rows, len(passed.phases)) == (plain.steps, plain.buffers[1].rows, len(plain.phases))
    assert SchemeModel(guarded(staged_read)).names == ("loop", "caller")


@pytest.mark.parametrize(
    ("yielded", "message"),
    [
        (SyncStream, "yields a type, which is no operation"),
        (None, "yields None, which is no operation"),
        (SyncStream(3), "has a SyncStream whose stream is 3, not a str"),
        (Copy("copy", ROW, STAGE), "has a Copy whose target is a Buffer, not a Rows"),
        (Copy("copy", ROW, STAGE.at(1.5, 0, 1)), "has a Copy whose target's slot is 1.5, not an int"),
        (Copy("copy", ROW, STAGE.at(True, 0, 1)), "has a Copy whose target's slot is True, not an int"),
        (Launch("copy", reads=[ROW]), r"has a Launch whose reads is a list: make it a tuple, as in reads=\(rows,\)"),
        (CopyBatch("copy", [(ROW, ROW)]), "has a CopyBatch whose copies is a list: make it a tuple"),
        (Copy("copy", ROW, Buffer("new", Memory.PINNED, 1, 1).at(0, 0, 1)), "uses buffer 'new', which its Scheme does not list"),
    ],
)
def test_what_is_no_operation(yielded: Any, message: str) -> None:
    with pytest.raises(SchemeFileError, match=message):
        yielding(SyncStream("copy"), yielded)(runs=ONE_ROW).step(0)
    assert len(tuple(yielding(SyncStream("copy"))(runs=ONE_ROW).step(0))) == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda runs: None, "returns None, not a Scheme"),
        (lambda runs: runs.number, "returns 1, not a Scheme"),
        (lambda runs: Scheme("loop", (), 1, None), "whose step is None, not a function"),
        (lambda runs: Scheme("loop", [STAGE], 1, lambda i: ()), "whose buffers are a list, not a tuple"),
        (lambda runs: Scheme("loop", (ROW,), 1, lambda i: ()), "lists a Rows among its buffers"),
        (lambda runs: Scheme("loop", (), 1.0, lambda i: ()), "has a Scheme whose steps is 1.0, not an int"),
        (lambda runs: Scheme("loop", (), 1, lambda i: (), epilogue=("wait",)), "yields 'wait', which is no operation"),
        (
            lambda runs: Scheme("loop", (), 1, lambda i: (), epilogue=(1 // n for n in (0,))),
            "the epilogue of loop raises ZeroDivision",
        ),
        (lambda runs: Scheme("loop", (), 1, lambda i: (), result=STAGE), "whose result is a Buffer, not a Result"),
    ],
)
def test_what_is_no_scheme(function: Callable[[Runs], Any], message: str) -> None:
    with pytest.raises(SchemeFileError, match=message):
        guarded(function)(runs=ONE_ROW)


def test_a_step_that_forgot_to_yield() -> None:
    with pytest.raises(SchemeFileError, match=r"a step gives None\. Is a yield missing\?"):
        looping(lambda i: None)(runs=ONE_ROW).step(0)


def test_an_epilogue_given_as_a_generator_is_there_in_every_call_of_phases() -> None:
    scheme = looping(lambda i: (), epilogue=(each for each in (SyncStream("copy"),)))(runs=ONE_ROW)
    for _ in range(2):
        assert [type(operation) for operation in scheme.phases[1].step(0)] == [SyncStream]
