"""`kvstage traces`: the schedules of a scheme and of its broken variants, as files."""

import argparse
import re
from pathlib import Path
from typing import Any

from ..reports.console import counted
from .outcomes import CLEAN, TraceFileError
from .trace_files import FORMATS, subjects, traces

TRACES = """\
Writes the schedules of a scheme's small instances, and of its broken variants: in issue order, with each copy and kernel
held back before its begin and before its end, and, where two accesses may overlap, a schedule in which they do.
"""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    writing = commands.add_parser(
        "traces",
        help="write the schedules of a scheme, safe and broken",
        description=TRACES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    writing.add_argument("target", nargs="+", metavar="NAME | FILE.py:SCHEME", help="ring (with its variants), ring.read, ...")
    writing.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="where a folder for each scheme is made")
    writing.add_argument(
        "--format", action="append", choices=FORMATS, help="json (default), chrome (for Perfetto), svg, text; may be repeated"
    )
    writing.set_defaults(run=_traces)


def _traces(arguments: argparse.Namespace) -> int:
    chosen = {name: function for target in arguments.target for name, function in subjects(target).items()}
    for name, function in chosen.items():
        folder = arguments.output / slug(name)
        written = 0
        for each in traces(function):
            for form in dict.fromkeys(arguments.format or ["json"]):
                _write(folder / f"{slug(each.schedule)}{FORMATS[form].suffix}", each.text(form))
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
