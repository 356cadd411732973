"""The reports of ThreadSanitizer and AddressSanitizer, as text without symbols: both put a heading above each stack."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .symbols import Stack, stack_in

REPORT = re.compile(r"^(?:WARNING: ThreadSanitizer|==\d+==ERROR: AddressSanitizer): (.*)$", re.MULTILINE)
THREAD = re.compile(r"^  Thread (T\d+) '([^']*)'", re.MULTILINE)
ACCESS = re.compile(r"(?:previous |atomic )*(read|write) of size \d+ .* by (main thread|thread T\d+)", re.IGNORECASE)
BLOCK = re.compile(r"heap block of size (\d+)|of (\d+)-byte region|inside of (\d+)-byte region")
GLOBAL = re.compile(r"Location is (global '[^']*' of size \d+|stack of .*?)(?: at| \(|\.$|$)")
HOST = "the host"


@dataclass(frozen=True, slots=True)
class Access:
    """Who does what, and its stack."""

    who: str
    writes: bool
    stack: Stack


@dataclass(frozen=True, slots=True)
class Report:
    """One report: `kind` in the sanitizer's words, the accesses with the earlier one first, and the memory that both touch."""

    kind: str
    accesses: tuple[Access, ...]
    memory: str
    allocated: Stack
    freed: Stack


def reports(text: str) -> Iterator[Report]:
    """All reports of a log."""
    starts = [match.start() for match in REPORT.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        yield _report(text[start:end])


def _report(text: str) -> Report:
    kind = REPORT.match(text)
    assert kind is not None
    names: dict[str, str] = dict(THREAD.findall(text))
    accesses: list[Access] = []
    memory = ""
    allocated: Stack = ()
    freed: Stack = ()
    for heading, stack in _sections(text):
        if found := ACCESS.search(heading):
            who = found[2].removeprefix("thread ")
            name = HOST if who == "main thread" else names.get(who, f"{HOST} ({who})")
            accesses.append(Access(name, found[1].lower() == "write", stack))
        if found := BLOCK.search(heading):
            memory = f"{next(size for size in found.groups() if size)} bytes"
        if found := GLOBAL.search(heading):
            memory = found[1]
        if "allocated by" in heading:
            allocated = stack
        if "freed by" in heading:
            freed = stack
    words = kind[1].partition(" (pid=")[0].partition(" on address")[0].partition(" on unknown")[0]
    return Report(words, tuple(reversed(accesses)), memory, allocated, freed)


def _sections(text: str) -> Iterator[tuple[str, Stack]]:
    """Each heading, which may have several lines, with the stack below it."""
    heading: list[str] = []
    frames: list[str] = []
    for line in [*text.splitlines(), ""]:
        if re.match(r"\s+#\d+ ", line):
            frames.append(line)
            continue
        if frames:
            yield " ".join(heading), stack_in("\n".join(frame.partition(" (BuildId")[0] for frame in frames))
            heading, frames = [], []
        if line.strip():
            heading.append(line.strip())
        elif heading and heading[-1].endswith("."):
            yield " ".join(heading), ()
            heading = []
