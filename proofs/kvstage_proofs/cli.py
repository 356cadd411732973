"""The command line: `kvstage prove` and `kvstage explain`; `trace_commands` has the commands about traces."""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from . import github, trace_commands
from .crosscheck import CrosscheckError, crosschecked, require_cvc5
from .crosscheck import summary as crosscheck_summary
from .dependence import table, with_axioms
from .explain import explained
from .guard import SchemeError
from .habits import footnotes
from .judge import Review
from .junit import as_junit
from .loading import TargetError, is_file, obligations
from .obligation import Judgement, Obligation, Verdict
from .report import Text, as_json, summary
from .runner import RunnerError, judged
from .smt2 import Folder

AS_EXPECTED, WRONG, UNUSABLE, OPEN = 0, 1, 2, 3
READER_GONE = 128 + signal.SIGPIPE
"""What shells say of a program that SIGPIPE has ended."""

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

EXPLAIN = """\
Judges obligations like `prove`, one after the other, and tells all of each: what is claimed and assumed, how large the
queries are, and where it is refuted, the schedule drawn as lanes, the order that is missing, and waits that supply it.
"""
KNOWN = (TargetError, SchemeError, RunnerError, CrosscheckError, *trace_commands.KNOWN)
"""What ends a run and is told in one line."""


class OutputError(Exception):
    """The file for the report can't be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code. `argv` is without the program's name; sys.argv by default."""
    arguments = _parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        return READER_GONE
    except (OutputError, *KNOWN) as error:
        print(f"kvstage: {error}", file=sys.stderr)
        for line in github.error(str(error)):
            print(line)
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
    prove.add_argument("--junit-xml", metavar="FILE", type=Path, help="write the report as JUnit XML, too")
    prove.add_argument("--crosscheck", action="store_true", help="have cvc5 confirm every answer of z3's")
    prove.add_argument("--axioms", action="store_true", help="show which axioms each proof rests on")
    prove.add_argument("--smt2", metavar="DIR", type=Path, help="write every query that was asked as SMT-LIB, too")
    prove.set_defaults(run=_prove)
    explain = commands.add_parser(
        "explain",
        help="tell all of one obligation, or of those of one scheme",
        description=EXPLAIN,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("target", metavar="NAME | FILE.py:SCHEME", help="per_block.read:T1, per_block.read, per_block")
    explain.set_defaults(run=_explain)
    trace_commands.add(commands)
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
    stated = _stated(targets)
    text, progress = Text([each.statement for each in stated], _coloured(sys.stdout)), _Progress(sys.stderr, len(stated))
    try:
        for judgement in judged(targets, stated, progress.show, reviews):
            judgements.append(judgement)
            progress.clear()
            print(text.line(judgement))
            for line in text.details(judgement, verbose or _wants_schedule(targets, judgement)):
                print(line)
    finally:
        progress.clear()


def _explain(arguments: argparse.Namespace) -> int:
    judgements = []
    for obligation in _stated((arguments.target,)):
        judgement, lines = explained(obligation)
        print(*lines, "", sep="\n", flush=True)
        judgements.append(judgement)
    return exit_code(judgements)


def _stated(targets: tuple[str, ...]) -> tuple[Obligation, ...]:
    stated = obligations(targets)
    if not stated:
        raise TargetError("there is no obligation to judge")
    return stated


def _append_summary(markdown: str) -> None:
    """Shows the summary of the run on the page of a GitHub job, where there is one."""
    file = os.environ.get(github.SUMMARY)
    if file:
        try:
            with open(file, "a", encoding="utf-8") as stream:
                stream.write(markdown)
        except OSError as error:
            raise OutputError(f"can't write {file}: {error.strerror}") from error


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
def _replacing(file: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that puts a text in the place of `file`. It can be written from here on, so that the proofs aren't in vain.

    Where it is never called the old file stays. Raises OutputError where the file can't be written.
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
