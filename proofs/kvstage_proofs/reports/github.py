"""What GitHub Actions shows: an annotation at each scheme of a user that is wrong, and a Markdown summary of the run.

Annotations are workflow commands on stdout: `::error file=mine.py,line=7,title=...::message`.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from kvstage_model.ordering import missing_waits

from ..obligation import Judgement
from ..targets.user_file import is_file, line_of

ACTIONS, SUMMARY, WORKSPACE = "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"
"""The variables by which a step knows where it runs, where its summary goes, and where the repository lies."""
LINE = re.compile(r"(.+?\.py):(\d+): (.*)", re.DOTALL)
"""How a reason begins that knows its line in a user's file."""


def annotations(judgements: Sequence[Judgement], environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """One command for each wrong verdict on a user's scheme; none outside GitHub Actions."""
    if environment.get(ACTIONS) != "true":
        return
    for judgement in judgements:
        if not judgement.ok and is_file(judgement.statement.scheme):
            yield _annotation(judgement, environment.get(WORKSPACE, ""))


def error(message: str, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The command for what ended a run, if it knows its line in a user's file; none outside GitHub Actions."""
    told = LINE.fullmatch(message)
    if told and environment.get(ACTIONS) == "true":
        yield _command(told[1], int(told[2]), "kvstage can't judge it", told[3], environment.get(WORKSPACE, ""))


def _annotation(judgement: Judgement, root: str) -> str:
    statement = judgement.statement
    title = f"{statement.name} {judgement.verdict.value}, expected {statement.expected.value}"
    told = LINE.fullmatch(judgement.reason)
    file, line = (told[1], int(told[2])) if told else line_of(statement.scheme)
    message = told[3] if told else "\n".join(_message(judgement))
    return _command(file, line, title, message, root)


def _command(file: str, line: int, title: str, message: str, root: str) -> str:
    place = f"file={_property(_in_repository(file, root))},line={line},title={_property(title)}"
    return f"::error {place}::{_data(message)}"


def _message(judgement: Judgement) -> Iterator[str]:
    """The reason; what is wrong with which instance, and what to do about it."""
    if judgement.reason:
        yield judgement.reason
    found = judgement.counterexample
    if found is not None:
        yield f"{found.wrong}; {found.values}"
        if found.race is not None:
            yield from missing_waits.lines(found.trace.program, found.race)


def _in_repository(file: str, root: str) -> str:
    """A path from the root of the repository, which is what GitHub looks up; as it is, if it lies elsewhere."""
    path = Path(file).absolute()
    return path.relative_to(root).as_posix() if root and path.is_relative_to(root) else file


def _data(text: str) -> str:
    """The message of a command: one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a command: beside that, what separates properties."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_markdown(judgements: Sequence[Judgement], summary: str) -> str:
    """The summary of a run: a table of all obligations, wrong ones first, and the schedules of those, folded."""
    wrong = [judgement for judgement in judgements if not judgement.ok]
    right = [judgement for judgement in judgements if judgement.ok]
    lines = ["## kvstage prove", "", _cell(summary), ""]
    if judgements:
        lines += ["| | obligation | claim | verdict | seconds |", "|---|---|---|---|---:|", *map(_row, [*wrong, *right]), ""]
    for judgement in wrong:
        lines += _details(judgement)
    return "\n".join(lines) + "\n"


def _row(judgement: Judgement) -> str:
    statement = judgement.statement
    verdict = judgement.verdict.value + ("" if judgement.ok else f", expected {statement.expected.value}")
    mark = ":white_check_mark:" if judgement.ok else ":x:"
    cells = map(_cell, (statement.name, statement.title, verdict, f"{judgement.seconds:.1f}"))
    return f"| {mark} | {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text as Markdown shows it, in one cell."""
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", escape(text, quote=False)).replace("\n", " ")


def _details(judgement: Judgement) -> Iterator[str]:
    """Why one is wrong, below a line to click on. In <pre>, which no text of a schedule can break out of."""
    found = judgement.counterexample
    text = [*([judgement.reason] if judgement.reason else []), *([] if found is None else found.lines())]
    yield f"<details><summary>{escape(judgement.statement.name)}: {judgement.verdict.value}</summary>"
    yield ""  # Markdown takes a <pre> up to its end, empty lines and all, only if it begins a block
    yield f"<pre>{escape(chr(10).join(text))}</pre>"
    yield "</details>"
    yield ""
