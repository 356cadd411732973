"""`kvstage cpp`, which is a package of its own: it is loaded when it is asked for, and reads its arguments itself."""

import argparse
from typing import Any

from .outcomes import CppCommandError

NO_PREFIX = "\0"
"""Nothing begins with it: all that follows is handed on as it is, options too."""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "cpp", help="run tests of C++ engines under schedules, without a GPU", add_help=False, prefix_chars=NO_PREFIX
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from kvstage_cpp.command import main
    from kvstage_cpp.errors import CppError

    try:
        return main(arguments.rest)
    except CppError as error:
        raise CppCommandError(str(error)) from error
