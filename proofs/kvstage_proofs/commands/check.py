"""`kvstage check`: a run of any code, as a trace, against a scheme."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.races import HappensBefore
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.traces.call_arguments import called
from kvstage_model.traces.check import check
from kvstage_model.traces.errors import TraceFormatError
from kvstage_model.traces.json_reader import Document, read_file
from kvstage_model.traces.text import timeline

from ..reports.console import counted
from ..targets.names import TargetError
from ..targets.user_file import is_file, load
from .outcomes import CLEAN, VIOLATION, TraceFileError
from .trace_files import subjects

SHOWN, MOST_NAMES = 40, 6
"""Characters of a name, and names, that a message shows of a file's."""
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


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    checking = commands.add_parser(
        "check",
        help="check a trace against a scheme",
        description=CHECK,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    checking.add_argument("trace", metavar="TRACE", type=Path, help="a trace as JSON")
    checking.add_argument(
        "--scheme", metavar="NAME | FILE.py:SCHEME", required=True, help="the scheme that was to run: ring.read, file.py:scheme"
    )
    checking.set_defaults(run=_check)


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

    The one takes any runs of rows, the other a block table. Raises TargetError if it stands for none, or for several.
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
    """A file's names as a message may show them: the first few, without what would disturb a terminal."""
    return [name if name.isidentifier() and name.isascii() and len(name) < SHOWN else ascii(name)[:SHOWN] for name in names][
        :MOST_NAMES
    ]
