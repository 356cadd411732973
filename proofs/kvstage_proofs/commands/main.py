"""The command `kvstage`: its subcommands, each in a file of its own, and what becomes of their errors."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from ..reports import github
from . import cases, check, cpp, emit, explain, prove, traces
from .outcomes import KNOWN, UNUSABLE

COMMANDS = (prove, explain, traces, check, cases, emit, cpp)
"""The subcommands, in the order in which they are listed: each module's `add` declares its arguments and what runs it."""

READER_GONE = 128 + signal.SIGPIPE
"""What shells say of a program that SIGPIPE has ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code. `argv` is without the program's name; sys.argv by default."""
    arguments = _parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        return READER_GONE
    except KNOWN as error:
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
    for command in COMMANDS:
        command.add(commands)
    return parser
