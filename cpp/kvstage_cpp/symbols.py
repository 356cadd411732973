"""Addresses in programs as lines of code, by binutils' addr2line: one call for each module, however many addresses."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import ROOT
from .errors import CppError

Address = tuple[str, int]
"""A module's path, and an offset in it."""
Stack = tuple[Address, ...]
"""Innermost frame first."""

SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/local/include/", "/lib/")
"""Where libraries and their sources are: a line there is no mistake of the program's."""
ADDRESS = re.compile(r"\(([^()\s]+)\+0x([0-9a-f]+)\)")


def stack_in(text: str) -> Stack:
    """All addresses of a text, as sanitizers and the runtime write them: (module+0x12ab)."""
    return tuple((module, int(offset, 16)) for module, offset in ADDRESS.findall(text))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code. Without debug information `number` is 0 and `file` tells the module and the offset."""

    file: str
    number: int

    def __str__(self) -> str:
        where = f"{Path(self.file).name}:{self.number}" if self.number else self.file
        text = source_line(self.file, self.number)
        return f"{where}: {text}" if text else where


@cache
def source_line(file: str, number: int) -> str:
    """The text of a line, without what surrounds it; empty if it can't be read."""
    try:
        lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


class Symbols:
    """Finds the lines of addresses, and remembers them."""

    def __init__(self) -> None:
        self._lines: dict[Address, tuple[Line, ...]] = {}

    def load(self, stacks: Iterable[Stack]) -> None:
        """Asks for all addresses at once that are not known yet."""
        asked: dict[str, set[int]] = defaultdict(set)
        for module, offset in {address for stack in stacks for address in stack} - set(self._lines):
            asked[module].add(offset)
        for module, offsets in asked.items():
            listed = sorted(offsets)
            for offset, lines in zip(listed, _lines(module, listed), strict=True):
                self._lines[module, offset] = lines

    def line(self, stack: Stack) -> Line:
        """The innermost line of the program's own: not the runtime's, nor a library's if there is another one."""
        self.load([stack])
        outside = [address for address in stack if not address[0].startswith(SYSTEM)]
        known = [line for address in outside for line in self._lines[address] if not Path(line.file).is_relative_to(ROOT)]
        own = [line for line in known if not line.file.startswith(SYSTEM)]
        if own or known:
            return (own or known)[0]
        module, offset = stack[-1] if stack else ("?", 0)
        return Line(f"{Path(module).name}+{offset:#x} (build with -g to see the line)", 0)


def _lines(module: str, offsets: list[int]) -> list[tuple[Line, ...]]:
    """The lines of each address, that of the innermost inlined function first."""
    command = ["addr2line", "-a", "-i", "-e", module, *map(hex, offsets)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CppError("addr2line is missing, which turns addresses into lines of code: install binutils") from None
    if run.returncode:
        return [()] * len(offsets)
    found: list[list[Line]] = []
    for text in run.stdout.splitlines():
        if text.startswith("0x"):
            found.append([])
            continue
        file, _, number = text.partition(" (discriminator")[0].rpartition(":")
        if number.isdigit() and file != "??" and int(number):
            found[-1].append(Line(str(Path(file).resolve()), int(number)))
    return [tuple(lines) for lines in found]
