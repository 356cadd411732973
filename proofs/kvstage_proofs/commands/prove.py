"""`kvstage prove`: schemes proved free of hazards, or the schedule that breaks them."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ..catalogue.driver_habits import footnotes
from ..judging.crosscheck import crosschecked
from ..judging.crosscheck import summary as crosscheck_summary
from ..judging.judge import Review
from ..judging.smt2_export import Folder
from ..judging.t8_axioms_used import table, with_axioms
from ..obligation import Judgement
from ..reports import github
from ..reports.cases import table as cases_table
from ..reports.console import Text, summary
from ..reports.json_report import as_json
from ..reports.junit import as_junit
from ..solvers.cvc5_solver import require_cvc5
from ..targets.user_file import is_file
from .outcomes import EXIT_CODES, KNOWN, OutputError, exit_code, stated
from .parallel import judge_all

PROVE = """\
Proves what the catalogue states of the schemes, and refutes what it states of their broken variants; or judges a
scheme of your own, in a Python file. A scheme is a function whose parameters are declared with their ranges:

    def read(runs: Runs) -> Scheme: ...
"""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    prove = commands.add_parser(
        "prove",
        help="prove schemes free of hazards, or show the schedule that breaks them",
        description=PROVE,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    prove.add_argument(
        "target",
        nargs="*",
        metavar="NAME | FILE.py:SCHEME",
        help="per_block (with its broken variants), per_block.read, per_block.read:T1, case:H15, cases; default: the catalogue",
    )
    prove.add_argument("-v", "--verbose", action="store_true", help="print every counterexample, and its whole schedule")
    prove.add_argument("--json", metavar="FILE", type=Path, help="write the report as JSON, too")
    prove.add_argument("--junit-xml", metavar="FILE", type=Path, help="write the report as JUnit XML, too")
    prove.add_argument("--crosscheck", action="store_true", help="have cvc5 confirm every answer of z3's")
    prove.add_argument("--axioms", action="store_true", help="show which axioms each proof rests on")
    prove.add_argument("--smt2", metavar="DIR", type=Path, help="write every query that was asked as SMT-LIB, too")
    prove.set_defaults(run=_prove)


def _reviews(arguments: argparse.Namespace) -> tuple[Review, ...]:
    """What is done with each judgement beside reporting it. Raises if it can't be done, before anything is proved."""
    reviews: list[Review] = []
    if arguments.smt2 is not None:
        try:
            arguments.smt2.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"can't write into {arguments.smt2}: {error.strerror}") from error
        reviews.append(Folder(arguments.smt2))
    if arguments.axioms:
        reviews.append(with_axioms)
    if arguments.crosscheck:
        require_cvc5()
        reviews.append(crosschecked)
    return tuple(reviews)


def _prove(arguments: argparse.Namespace) -> int:
    begun = time.perf_counter()
    judgements: list[Judgement] = []
    with _replacing(arguments.json) as put_json, _replacing(arguments.junit_xml) as put_junit:
        reviews = _reviews(arguments)
        try:
            _judge(tuple(arguments.target), arguments.verbose, reviews, judgements)
        except Exception as error:
            told = str(error) if isinstance(error, KNOWN) else "".join(traceback.format_exception(error))
            put_junit(as_junit(judgements, told))
            raise
        for line in cases_table(judgements):
            print(line)
        last_line = summary(judgements, time.perf_counter() - begun)
        print(last_line)
        if crosschecked in reviews:
            print(crosscheck_summary(judgements))
        if with_axioms in reviews:
            print("", *table(judgements), *footnotes(), sep="\n")
        put_json(as_json(judgements))
        put_junit(as_junit(judgements))
        for line in github.annotations(judgements):
            print(line)
        _append_summary(github.as_markdown(judgements, last_line))
    return exit_code(judgements)


def _judge(targets: tuple[str, ...], verbose: bool, reviews: tuple[Review, ...], judgements: list[Judgement]) -> None:
    """Judges what the targets name and prints each judgement; appends it to `judgements`, too, which outlive an error."""
    asked = stated(targets)
    text, progress = Text([each.statement for each in asked], _coloured(sys.stdout)), _Progress(sys.stderr, len(asked))
    try:
        for judgement in judge_all(targets, asked, progress.show, reviews):
            judgements.append(judgement)
            progress.clear()
            print(text.line(judgement))
            for line in text.details(judgement, verbose or _wants_schedule(targets, judgement), whole=verbose):
                print(line)
    finally:
        progress.clear()


def _append_summary(markdown: str) -> None:
    """Shows the summary of the run on the page of a GitHub job, if there is one."""
    file = os.environ.get(github.SUMMARY)
    if file:
        try:
            with open(file, "a", encoding="utf-8") as stream:
                stream.write(markdown)
        except OSError as error:
            raise OutputError(f"can't write {file}: {error.strerror}") from error


def _wants_schedule(targets: tuple[str, ...], judgement: Judgement) -> bool:
    """Whether a schedule is news: of a user's own scheme, of an obligation asked for by name, or if none was expected."""
    statement = judgement.statement
    return not judgement.ok or is_file(statement.scheme) or statement.name in targets


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class _Progress:
    """`12/63 ...` on a terminal, in one line that is cleared before anything else is written; nothing elsewhere."""

    def __init__(self, stream: TextIO, number: int) -> None:
        self._stream, self._number, self._on = stream, number, stream.isatty()

    def show(self, done: int) -> None:
        if self._on:
            print(f"\r{done}/{self._number} ...", end="", file=self._stream, flush=True)

    def clear(self) -> None:
        if self._on:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


@contextmanager
def _replacing(file: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that puts a text in the place of `file`. It can be written from here on, so that the proofs aren't in vain.

    If it is never called the old file stays. Raises OutputError if the file can't be written.
    """
    if file is None:
        yield lambda text: None
        return
    if file.exists() and not file.is_file():
        raise OutputError(f"can't write {file}: it is no regular file")
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        stream = beside.open("x", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"can't write {file}: {error.strerror}") from error

    def put(text: str) -> None:
        with stream:
            stream.write(text)
        beside.replace(file)

    try:
        yield put
    finally:
        stream.close()
        beside.unlink(missing_ok=True)
