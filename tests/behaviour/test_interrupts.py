"""A call that is interrupted at any line: what it has issued is known to the stager, which waits for it, and to autograd."""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage.calls import Calls
from tests.support.devices import everything

AT_ONCE = ["direct", "gather_pinned", "gather_host", "gather_copy"]
CODE = {"calls", "runtime", "performer", "pending", "staging_memory", "memory_budget", "transfer", "left_behind", "requests"}
"""Modules in whose lines a call is interrupted: of the library above its device."""
TWIN = "noted_late"
"""A function of this file that takes part in a call."""
TABLE = [1, 2]


class Interrupt:
    """Raises KeyboardInterrupt before the `at`-th line that is run inside; `place` is where, once it has."""

    def __init__(self, at: int) -> None:
        self.place: tuple[str, int] | None = None
        self._left = at

    @contextmanager
    def armed(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        except KeyboardInterrupt:
            assert self.place is not None
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, kind: str, argument: object) -> Any:
        file = Path(frame.f_code.co_filename)
        above = "kvstage" in file.parent.parts and file.stem in CODE
        return self._line if above or frame.f_code.co_name == TWIN else None

    def _line(self, frame: FrameType, kind: str, argument: object) -> Any:
        file, number = frame.f_code.co_filename, frame.f_lineno
        # a `with` is run a second time at its end, where the interpreter calls `__exit__` before it looks for signals
        if kind == "line" and not linecache.getline(file, number).lstrip().startswith("with "):
            self._left -= 1
            if not self._left:
                self.place = Path(file).name, number
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


def interrupted(scheme: str, direction: str, at: int) -> tuple[tuple[str, int] | None, bool]:
    """Where a call was interrupted, and whether what it has issued is known."""
    pool = PagedPool(torch.ones(8, 4, 3))
    rows, out = torch.zeros(6, 3), torch.zeros(6, 3)
    written = pool.tensor if direction == "write" else out
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        stager.read(pool, TABLE, 0, 6).wait()
        stager.read(pool, TABLE, 0, 6).wait()
        issued, version, interrupt = device.copies + device.launches, written._version, Interrupt(at)
        with device.hold(everything) as held:
            with interrupt.armed():
                if direction == "write":
                    stager.write(pool, TABLE, 0, rows)
                else:
                    stager.read(pool, TABLE, 0, 6, out=out)
            calls = stager._calls
            known = bool(calls._under_way or calls._runtime.in_doubt) and written._version > version
            known = known or device.copies + device.launches == issued
            if known:
                stager.close()
                assert not any(held._held.values()), "close has waited for all of it"
    return interrupt.place, known


def places(scheme: str, direction: str) -> tuple[int, set[tuple[str, int]]]:
    """How many lines a call was interrupted at, and those after which nobody knew what it had issued."""
    unknown = set()
    for at in range(1, 2000):
        place, known = interrupted(scheme, direction, at)
        if place is None:
            return at - 1, unknown
        if not known:
            unknown.add(place)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("scheme", AT_ONCE)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_what_an_interrupted_call_has_issued_is_waited_for(watch, scheme, direction):
    lines, unknown = places(scheme, direction)
    watch.taken()  # a call that is interrupted behind its mark is none of the scheme's
    assert lines > 50
    assert not unknown


def test_twin_a_call_that_is_noted_behind_its_end_is_lost_in_between(watch, monkeypatch):
    submit = Calls._perform

    def noted_late(calls: Calls, *arguments: Any) -> Any:
        submitted = submit(calls, *arguments)
        pending = calls._under_way.pop()
        calls._under_way.append(pending)
        return submitted

    monkeypatch.setattr(Calls, "_perform", noted_late)
    _, unknown = places("direct", "write")
    watch.taken()
    assert {file for file, _ in unknown} == {Path(__file__).name}
    assert len(unknown) == 1
