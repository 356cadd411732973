"""`kvstage emit`: a proved scheme as a C++ header."""

import argparse
from pathlib import Path
from typing import Any

from kvstage_model.schemes.registry import ENTRIES

from ..obligation import Judgement, Statement, Verdict
from ..targets.names import TargetError, obligations
from ..targets.user_file import is_file, plain
from .outcomes import CLEAN, VIOLATION, TraceFileError
from .parallel import judge_all

EMIT = """\
Writes a scheme as a C++17 header without dependencies: a function template over a small backend, out of the Python function
that is proved, with its names, conditions and loops. The scheme is judged first, and written only if all is PROVED.
Without a scheme, all of the library's are written. `staging.hpp`, which they stand on, and the backends are put beside them.
"""
CODES = """\
exit code:
  0  all is written
  1  a scheme is not PROVED, and nothing is written
  2  usage, an internal error, or a scheme that can't be read or has no C++
"""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    emitting = commands.add_parser(
        "emit",
        help="write a proved scheme as a C++ header",
        description=EMIT,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    emitting.add_argument("target", nargs="*", metavar="NAME | FILE.py:SCHEME", help="per_block, file.py:scheme; default: all")
    emitting.add_argument("--lang", choices=("cpp",), default="cpp", help="the language (default: cpp)")
    emitting.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="where the headers are put")
    emitting.set_defaults(run=_emit)


def _emit(arguments: argparse.Namespace) -> int:
    from kvstage_emit.reading.refusal import EmitError
    from kvstage_emit.writing.header import Draft, of_entry, of_function, support, verdict_lines

    entries = {entry.name: entry for entry in ENTRIES}

    def draft(target: str) -> Draft:
        if is_file(target):
            return of_function(plain(target), target)
        if target not in entries:
            raise TargetError(f"there is no scheme {target!r} to emit; there are {', '.join(entries)}, or file.py:scheme")
        return of_entry(entries[target])

    try:
        drafts = [draft(target) for target in arguments.target or entries]
    except EmitError as reason:
        raise TargetError(str(reason)) from reason
    judged = {each: _judgements(each.name, each.judged) for each in drafts}
    wrong = [judgement for each in judged.values() for judgement in each if judgement.verdict is not Verdict.PROVED]
    for judgement in wrong:
        found = f"{judgement.statement.name} is {judgement.verdict.value}, not PROVED: nothing is written."
        print(f"{found} {judgement.reason}".rstrip())
    if wrong:
        return VIOLATION
    files = support()
    for each, judgements in judged.items():
        rows = [(judgement.verdict.value, judgement.statement.name, judgement.statement.title) for judgement in judgements]
        files[f"{each.name}.hpp"] = each.header(verdict_lines(rows))
    for name, text in files.items():
        _write(arguments.output / name, text)
    for each in drafts:
        print(f"{each.name}: {arguments.output / f'{each.name}.hpp'}")
    return CLEAN


def _judgements(name: str, targets: tuple[str, ...]) -> list[Judgement]:
    """The judgements on the schemes and partitions themselves: those of broken variants are left out."""
    own = [obligation for obligation in obligations(targets) if _is_own(obligation.statement, targets)]
    files = tuple(target for target in targets if is_file(target))
    asked = (*(each.statement.name for each in own if each.statement.scheme not in files), *files)
    stated = obligations(asked)
    if not stated:
        raise TargetError(f"there is nothing to judge of {name}")
    return list(judge_all(asked, stated, lambda _: None))


def _is_own(statement: Statement, targets: tuple[str, ...]) -> bool:
    return statement.scheme in targets


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TraceFileError(f"can't write {file}: {error.strerror}") from error
