"""`kvstage traces` and `kvstage check`: schedules as files, and runs of anybody's code against a scheme."""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kvstage_model.library import LIBRARY
from kvstage_model.parameters import SchemeFunction, declared
from kvstage_model.races import HappensBefore
from kvstage_model.scheme import Scheme
from kvstage_model.trace_arguments import called
from kvstage_model.trace_check import check
from kvstage_model.trace_errors import TraceError, TraceFormatError
from kvstage_model.trace_reader import Document, read_file
from kvstage_model.trace_text import timeline

from .loading import TargetError, is_file, load
from .report import counted
from .trace_files import FORMATS, subjects, traces

CLEAN, VIOLATION = 0, 1
SHOWN, MOST_NAMES = 40, 6
"""Characters of a name, and names, that a message shows of a file's."""

TRACES = """\
Writes the schedules of a scheme's small instances, and of its broken variants: in issue order, with each copy and kernel
held back before its begin and before its end, and, where two accesses may overlap, a schedule in which they do.
"""

CHECK = """\
Checks a trace against a scheme: names the first operation that is not the scheme's, the first event that the axioms rule
out, and two accesses that nothing orders, with the waits that would order them.
"""

CODES = """\
exit code:
  0  the trace is one of the scheme's
  1  it is not
  2  usage, an internal error, or a file that can't be read or is no trace
"""


class TraceFileError(Exception):
    """A file can't be read or written."""


KNOWN = (TraceError, TraceFileError)
"""What ends these commands and is told in one line."""


def add(commands: Any) -> None:
    """Adds the two commands to the command line."""
    form = argparse.RawDescriptionHelpFormatter
    writing = commands.add_parser(
        "traces", help="write the schedules of a scheme, safe and broken", description=TRACES, formatter_class=form
    )
    writing.add_argument("target", nargs="+", metavar="NAME | FILE.py:SCHEME", help="ring (with its variants), ring.read, ...")
    writing.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="where a folder for each scheme is made")
    writing.add_argument(
        "--format", action="append", choices=FORMATS, help="json (default), chrome (for Perfetto), svg, text; may be repeated"
    )
    writing.set_defaults(run=_traces)
    checking = commands.add_parser(
        "check", help="check a trace against a scheme", description=CHECK, epilog=CODES, formatter_class=form
    )
    checking.add_argument("trace", metavar="TRACE", type=Path, help="a trace as JSON")
    checking.add_argument(
        "--scheme", metavar="NAME | FILE.py:SCHEME", required=True, help="the scheme that was to run: ring.read, file.py:scheme"
    )
    checking.set_defaults(run=_check)


def _traces(arguments: argparse.Namespace) -> int:
    chosen = {name: function for target in arguments.target for name, function in subjects(target).items()}
    for name, function in chosen.items():
        folder = arguments.output / slug(name)
        written = 0
        for each in traces(function):
            for form in dict.fromkeys(arguments.format or ["json"]):
                _write(folder / f"{slug(each.schedule)}{FORMATS[form]}", each.text(form))
            written += 1
        print(f"{name}: {counted(written, 'schedule', 'schedules')} in {folder}")
    return CLEAN


def slug(words: str) -> str:
    """A name as one of a file."""
    return re.sub(r"[^\w.]+", "-", words).strip("-.")


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TraceFileError(f"can't write {file}: {error.strerror}") from error


def _check(arguments: argparse.Namespace) -> int:
    functions = schemes_named(arguments.scheme)
    try:
        document = read_file(arguments.trace)
    except OSError as error:
        raise TraceFileError(f"can't read {arguments.trace}: {error.strerror}") from error
    trace = document.trace
    violations = check(trace, _called(functions, document))
    for violation in violations:
        print(*violation.lines, sep="\n")
        if violation.race is not None:
            race = violation.race
            schedule = HappensBefore(trace.program).schedule(race).until(race.first, race.second)
            print("a schedule in which they overlap:", *timeline(schedule, race), sep="\n")
    if violations:
        print(f"{arguments.trace}: not a run of {arguments.scheme}")
        return VIOLATION
    calls = trace.program[-1].call + 1
    size = f"{counted(len(trace.program), 'operation', 'operations')} in {counted(calls, 'call', 'calls')}"
    all_events = 2 * len(trace.program)
    cut = len(trace.events) < all_events
    which = f"the beginning of a run of {arguments.scheme}" if cut else f"a run of {arguments.scheme}"
    happened = f", {len(trace.events)} of {all_events} events" if cut else ""
    print(f"{arguments.trace}: {which}: {size}{happened}, no race")
    return CLEAN


def schemes_named(target: str) -> tuple[SchemeFunction, ...]:
    """The one scheme that a name or `file.py:scheme` stands for: as it is proved, and as the library calls it, if it does.

    The one takes any runs of rows, the other a block table. Raises TargetError where it stands for none, or for several.
    """
    if is_file(target):
        return (load(target),)
    found = subjects(target)
    if target not in found:
        raise TargetError(f"{target!r} stands for {len(found)} schemes: say which, such as {next(iter(found))!r}")
    scheme, _, direction = target.rpartition(".")
    pair = LIBRARY.get(scheme)
    return (found[target],) if pair is None else (found[target], {"read": pair.read, "write": pair.write}[direction])


def _called(functions: tuple[SchemeFunction, ...], document: Document) -> list[Scheme]:
    """The schemes that the calls of a trace were to run."""
    calls = document.trace.program[-1].call + 1
    names = [[parameter.name for parameter in declared(function)] for function in functions]
    given = document.arguments or ({},) * (0 if all(names) else calls)
    takes = " or ".join(dict.fromkeys(_listed(each) for each in names))
    if len(given) != calls:
        raise TraceFormatError(
            f"the trace has {calls} calls, and 'calls' has the arguments of {len(given)}: it must say what each call was given, "
            f"{takes}"
        )
    fitting = [next((f for f, each in zip(functions, names, strict=True) if set(each) == set(k)), None) for k in given]
    for number, function in enumerate(fitting):
        if function is None:
            raise TraceFormatError(
                f"calls[{number}] has the arguments of another scheme, {_listed(_harmless(given[number]))}: this one takes {takes}"
            )
    return [called(function, given[number], f"calls[{number}]") for number, function in enumerate(fitting) if function]


def _listed(names: Sequence[str]) -> str:
    return f"an object with {' and '.join(names)}" if names else "an object with nothing in it"


def _harmless(names: Iterable[str]) -> list[str]:
    """Somebody's names as a message may show them: the first few, without what would disturb a terminal."""
    return [name if name.isidentifier() and name.isascii() and len(name) < SHOWN else ascii(name)[:SHOWN] for name in names][
        :MOST_NAMES
    ]
