"""Lines of a user's file: where the user issued something."""

import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType

OURS = frozenset({"kvstage", "kvstage_model", "pytest_kvstage", "torch", "numpy", "weakref", "contextlib", "functools"})
"""Packages whose frames lie between a user's line and ours."""

RUNNERS = frozenset({"_pytest", "pluggy"})
"""Packages that call a test: after their frames there is no line of the test any more."""

UNITTEST, CALLS = "unittest.case", "_call"
"""So do functions of this module whose names begin so. Others of it are called by a test: `assertRaises` is one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source."""

    file: str
    number: int

    @property
    def place(self) -> str:
        """`loops/upload.py:12`: relative to the current folder if the file is in it."""
        relative = os.path.relpath(self.file)
        return f"{self.file if relative.startswith(os.pardir) else relative}:{self.number}"

    @property
    def text(self) -> str:
        """What stands there, without its indent; empty if the source is not at hand."""
        linecache.checkcache(self.file)
        return linecache.getline(self.file, self.number).strip()


def users_line() -> Line | None:
    """The innermost line that is not ours: the user's. None if a test runner has called us, so that the test is over."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        package = name.partition(".")[0]
        if package in RUNNERS or (name == UNITTEST and frame.f_code.co_name.startswith(CALLS)):
            return None
        if package not in OURS:
            return Line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None
