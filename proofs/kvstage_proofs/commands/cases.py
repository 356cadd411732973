"""`kvstage cases`: the public bugs, and those that are like a scheme of one's own."""

import argparse
from typing import Any

from kvstage_model.cases import CASES, Case
from kvstage_model.language.operations import Acquire, HostCopy, HostRead, HostWrite, Operation, Release, reads, writes
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.program import Issued
from kvstage_model.search.faults import hazard
from kvstage_model.search.search import Counterexample, search

from ..reports.cases import page
from ..targets.names import TargetError
from ..targets.user_file import is_file, load
from .outcomes import CLEAN

CASES_TEXT = """\
Lists the public bugs that are stated as schemes. With --like, those whose race is of the same kind as that of a scheme that
is refuted: the same two kinds of access, in the same order, and the fix that helped there.
"""
HOST = HostRead | HostWrite | HostCopy
Kind = tuple[str, str, str, str]
"""Who the first access is by and whether it reads or writes the common rows, and the same of the second."""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    cases = commands.add_parser(
        "cases",
        help="list the public bugs that are stated as schemes, or those like a scheme of yours",
        description=CASES_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cases.add_argument("--like", metavar="FILE.py:SCHEME", help="a scheme that is refuted")
    cases.add_argument("--page", action="store_true", help="print docs/cases.md")
    cases.set_defaults(run=_cases)


def _cases(arguments: argparse.Namespace) -> int:
    if arguments.page:
        print(*page(), sep="\n")
    elif arguments.like is None:
        print(*(_line(case) for case in CASES.values()), sep="\n")
    else:
        _like(arguments.like)
    return CLEAN


def _like(target: str) -> None:
    if not is_file(target):
        raise TargetError(f"--like takes a scheme in a file, such as file.py:scheme, and not {target!r}")
    found = kind_of(load(target))
    if found is None:
        print(f"{target}: no race in any small instance, so no bug is like it")
        return
    alike = [case for case in CASES.values() if kind_of(case.bug) == found]
    print(f"{target}: {_in_words(found)}")
    for case in alike:
        fixes = "; or ".join(fix.words for fix in case.fixes if not fix.incomplete)
        print(f"{_line(case)}\n     fixed there by: {fixes}")
    if not alike:
        print("no case has this pair of accesses: `kvstage explain` names the waits that would help")


def _line(case: Case) -> str:
    return f"{case.name:<4} {case.title} ({case.reports[0]})"


def kind_of(function: SchemeFunction) -> Kind | None:
    """The kind of the smallest race of a scheme; None if no small instance has one."""
    found = search(function, hazard)
    return None if found is None else _kind(found)


def _kind(found: Counterexample) -> Kind:
    assert found.race is not None, "a hazard is a race"
    first, second = (found.trace.program[index] for index in (found.race.first, found.race.second))
    return _agent(first), _way(first, second), _agent(second), _way(second, first)


def _agent(issued: Issued) -> str:
    operation: Operation = issued.operation
    if isinstance(operation, Release | Acquire):
        return "another user"
    return "the host" if isinstance(operation, HOST) else "a stream"


def _way(issued: Issued, other: Issued) -> str:
    """Whether an access writes the memory that it has in common with the other."""
    if isinstance(issued.operation, Release | Acquire):
        return "writes"
    names = {access.buffer.name for access in (*reads(other.operation), *writes(other.operation))}
    return "writes" if any(access.buffer.name in names for access in writes(issued.operation)) else "reads"


def _in_words(kind: Kind) -> str:
    first, way, second, other = kind
    return f"{first} {way}, and {second} {other} the same rows before it has ended"
