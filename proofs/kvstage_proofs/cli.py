"""The command line: `kvstage prove`."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .crosscheck import CrosscheckError, crosschecked, require_cvc5
from .crosscheck import summary as crosscheck_summary
from .guard import SchemeError
from .judge import Review
from .loading import TargetError, is_file, obligations
from .obligation import Judgement, Verdict
from .report import Text, as_json, summary
from .runner import RunnerError, judged
from .smt2 import Folder

AS_EXPECTED, WRONG, UNUSABLE, OPEN = 0, 1, 2, 3

EXIT_CODES = """\
exit code:
  0  every verdict is the one that was expected
  1  a wrong verdict, or VACUOUS, or UNSUPPORTED, or two solvers that DISAGREE
  2  usage, an internal error, or a file that can't be loaded, raises, or yields no operation
  3  all as expected, but some are UNKNOWN
"""

PROVE = """\
Proves what the catalogue states of the schemes, and refutes what it states of their broken variants; or judges a
scheme of your own, in a Python file. A scheme is a function whose parameters are declared with their ranges:

    def read(runs: Runs) -> Scheme: ...
"""


class OutputError(Exception):
    """The file for the report can't be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code. `argv` is without the program's name; sys.argv by default."""
    arguments = _parser().parse_args(argv)
    try:
        with _replacing(arguments.json) as file:
            return _prove(tuple(arguments.target), arguments.verbose, file, _reviews(arguments))
    except (TargetError, SchemeError, OutputError, RunnerError, CrosscheckError) as error:
        print(f"kvstage: {error}", file=sys.stderr)
    except Exception:  # noqa: BLE001 - Python would exit with 1, which says "a wrong verdict"
        traceback.print_exc()
        print("kvstage: internal error", file=sys.stderr)
    return UNUSABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kvstage", description="Staging of paged KV caches: proved, tested and run.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
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
        help="per_block (with its broken variants), per_block.read, per_block.read:T1; default: the whole catalogue",
    )
    prove.add_argument("-v", "--verbose", action="store_true", help="print every counterexample")
    prove.add_argument("--json", metavar="FILE", type=Path, help="write the report as JSON, too")
    prove.add_argument("--crosscheck", action="store_true", help="put every query to cvc5, too: it must give z3's answer")
    prove.add_argument("--smt2", metavar="DIR", type=Path, help="write every query that was asked as SMT-LIB, too")
    return parser


def _reviews(arguments: argparse.Namespace) -> tuple[Review, ...]:
    """What is done with each judgement beside reporting it. Raises where it can't be done, before anything is proved."""
    reviews: list[Review] = []
    if arguments.smt2 is not None:
        try:
            arguments.smt2.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"can't write into {arguments.smt2}: {error.strerror}") from error
        reviews.append(Folder(arguments.smt2))
    if arguments.crosscheck:
        require_cvc5()
        reviews.append(crosschecked)
    return tuple(reviews)


def _prove(targets: tuple[str, ...], verbose: bool, file: TextIO | None, reviews: tuple[Review, ...]) -> int:
    begun = time.perf_counter()
    stated = obligations(targets)
    if not stated:
        raise TargetError("there is no obligation to judge")
    statements = [obligation.statement for obligation in stated]
    text, progress = Text(statements, _coloured(sys.stdout)), _Progress(sys.stderr, len(stated))
    judgements: list[Judgement] = []
    try:
        for judgement in judged(targets, stated, progress.show, reviews):
            judgements.append(judgement)
            progress.clear()
            print(text.line(judgement))
            for line in text.details(judgement, verbose or _wants_schedule(targets, judgement)):
                print(line)
    finally:
        progress.clear()
    print(summary(judgements, time.perf_counter() - begun))
    if crosschecked in reviews:
        print(crosscheck_summary(judgements))
    if file is not None:
        file.write(as_json(judgements))
    return exit_code(judgements)


def exit_code(judgements: Sequence[Judgement]) -> int:
    """What the judgements come to. None at all is no success."""
    if not judgements:
        return UNUSABLE
    if all(judgement.ok for judgement in judgements):
        return AS_EXPECTED
    wrong = [judgement for judgement in judgements if not judgement.ok and judgement.verdict is not Verdict.UNKNOWN]
    return WRONG if wrong else OPEN


def _wants_schedule(targets: tuple[str, ...], judgement: Judgement) -> bool:
    """Whether a schedule is news: of a user's own scheme, of an obligation asked for by name, or where none was expected."""
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
def _replacing(file: Path | None) -> Iterator[TextIO | None]:
    """A file that takes the place of `file` once all is written; it is opened before the proofs, so that they aren't in vain.

    Raises OutputError where it can't be written.
    """
    if file is None:
        yield None
        return
    if file.exists() and not file.is_file():
        raise OutputError(f"can't write {file}: it is no regular file")
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        stream = beside.open("x", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"can't write {file}: {error.strerror}") from error
    try:
        with stream:
            yield stream
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
