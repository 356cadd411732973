"""`kvstage explain`: all of one obligation, or of those of one scheme."""

import argparse
from typing import Any

from ..reports.explain import explained
from .outcomes import EXIT_CODES, exit_code, stated

EXPLAIN = """\
Judges obligations like `prove`, one after the other, and tells all of each: what is claimed and assumed, how large the
queries are, and where it is refuted, the schedule drawn as lanes, the order that is missing, and waits that supply it.
"""


def add(commands: Any) -> None:
    """Adds the command to the command line."""
    explain = commands.add_parser(
        "explain",
        help="tell all of one obligation, or of those of one scheme",
        description=EXPLAIN,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("target", metavar="NAME | FILE.py:SCHEME", help="per_block.read:T1, per_block.read, per_block")
    explain.set_defaults(run=_explain)


def _explain(arguments: argparse.Namespace) -> int:
    judgements = []
    for obligation in stated((arguments.target,)):
        judgement, lines = explained(obligation)
        print(*lines, "", sep="\n", flush=True)
        judgements.append(judgement)
    return exit_code(judgements)
