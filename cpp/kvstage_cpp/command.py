"""`kvstage cpp`: runs tests of engines in C++ under schedules, says where the runtime's files are, and converts kernel launches."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from . import CMAKE, INCLUDE, SOURCE
from .convert import converted
from .errors import CppError
from .judge import judge, usable
from .program import Settings, run
from .report import as_junit, summary
from .schedules import DEFAULT, checked
from .trace import trace_of

CLEAN, FOUND = 0, 1
PAGEABLE = ("blocking", "documented", "async")

CPP = """\
A CUDA runtime without a GPU, for engines in C++: compile what --source names, include what --include-dir names.
"""

RUN = """\
Runs a test that is linked with kvstage's CUDA runtime again and again: in issue order, with all work as late as the host
waits for it, with each operation held back, and under schedules that are drawn. Tells races that ThreadSanitizer reports,
memory that is freed too early, waits that never end, and wrong results; equal ones once, with a string to replay it.
"""

CODES = """\
exit code:
  0  nothing was found
  1  a race, memory freed too early, a wait that never ends, or a test that fails
  2  usage, an internal error, or a program that can't be run, is not linked with the runtime, or issues no operation
"""

CONVERT = "Rewrites the kernel launches of a CUDA file, k<<<...>>>(...), so that any C++17 compiler takes it."


def main(argv: Sequence[str]) -> int:
    """Runs `kvstage cpp` with these arguments and returns its exit code. Raises CppError."""
    arguments = _parser().parse_args(argv)
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="kvstage cpp", description=CPP)
    where = parser.add_mutually_exclusive_group()
    for option, path, what in (
        ("--include-dir", INCLUDE, "the folder of cuda_runtime.h"),
        ("--source", SOURCE, "the file to compile, without sanitizers"),
        ("--cmake-dir", CMAKE, "the folder of the CMake package: cmake -Dkvstage_DIR=..."),
    ):
        where.add_argument(option, action="store_const", const=path, dest="path", help=f"print {what}")
    parser.set_defaults(run=_where)
    inner = parser.add_subparsers(metavar="COMMAND")
    running = inner.add_parser("run", help="run a test under schedules", description=RUN, epilog=CODES, formatter_class=form)
    running.add_argument(
        "--schedules",
        default=",".join(DEFAULT),
        metavar="LIST",
        help="issue-order, late, delays, seeded:COUNT, or replay strings, with commas between them (default: %(default)s)",
    )
    running.add_argument("--junit-xml", metavar="FILE", type=Path, help="write the report as JUnit XML, too")
    running.add_argument("--trace", metavar="FILE", type=Path, help="write the run in issue order as a trace for `kvstage check`")
    running.add_argument(
        "--pageable",
        choices=PAGEABLE,
        default="documented",
        help="what a copy of pageable memory does before its call returns (default: %(default)s)",
    )
    running.add_argument("--implicit-sync", action="store_true", help="cudaMalloc, cudaHostAlloc and cudaFree wait for the device")
    running.add_argument(
        "--watchdog", metavar="SECONDS", type=float, default=60.0, help="how long nothing may happen (default: %(default)g)"
    )
    running.add_argument("test", nargs="+", metavar="TEST", help="the program and its arguments, after --")
    running.set_defaults(run=_run)
    converting = inner.add_parser("convert", help="rewrite kernel launches as C++", description=CONVERT)
    converting.add_argument("file", metavar="FILE.cu", type=Path)
    converting.add_argument("-o", "--output", metavar="FILE.cpp", type=Path, required=True)
    converting.set_defaults(run=_convert)
    return parser


def _where(arguments: argparse.Namespace) -> int:
    if arguments.path is None:
        raise CppError("say what to do: run, convert, --include-dir, --source or --cmake-dir; kvstage cpp --help tells more")
    print(arguments.path)
    return CLEAN


def _run(arguments: argparse.Namespace) -> int:
    asked = checked(arguments.schedules.split(","))
    settings = Settings(arguments.pageable, arguments.implicit_sync, arguments.watchdog)
    if arguments.trace is not None:
        _write(arguments.trace, trace_of(usable(run(arguments.test, "issue-order", settings, trace=True))))
    verdict = judge(arguments.test, asked, settings)
    for finding in verdict.findings:
        print(*finding.lines(arguments.test, len(verdict.runs)), sep="\n")
    print(summary(verdict))
    if arguments.junit_xml is not None:
        _write(arguments.junit_xml, as_junit(arguments.test, verdict))
    return FOUND if verdict.findings else CLEAN


def _convert(arguments: argparse.Namespace) -> int:
    try:
        text = arguments.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CppError(f"can't read {arguments.file}: {error}") from None
    _write(arguments.output, converted(text, str(arguments.file)))
    return CLEAN


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CppError(f"can't write {file}: {error.strerror}") from None
