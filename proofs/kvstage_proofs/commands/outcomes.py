"""How a command ends: its exit code, and the errors that are told in one line."""

from collections.abc import Sequence

from kvstage_model.traces.errors import TraceError

from ..obligation import Judgement, Obligation, Verdict
from ..solvers.cvc5_solver import CrosscheckError
from ..targets.guard import SchemeFileError
from ..targets.names import TargetError, obligations
from .parallel import RunnerError

AS_EXPECTED, WRONG, UNUSABLE, OPEN = 0, 1, 2, 3
EXIT_CODES = """\
exit code:
  0  every verdict is the one that was expected
  1  a wrong verdict, or VACUOUS, or UNSUPPORTED, or two solvers that DISAGREE
  2  usage, an internal error, or a file that can't be loaded, raises, or yields no operation
  3  all as expected, but some are UNKNOWN
"""
CLEAN, VIOLATION = 0, 1
"""Of a command about traces."""


class OutputError(Exception):
    """The file for the report can't be written."""


class TraceFileError(Exception):
    """A file can't be read or written."""


class CppCommandError(Exception):
    """What `kvstage cpp` says of a program or file that it can't use."""


KNOWN = (TargetError, SchemeFileError, RunnerError, CrosscheckError, OutputError, TraceError, TraceFileError, CppCommandError)
"""What ends a run and is told in one line."""


def stated(targets: tuple[str, ...]) -> tuple[Obligation, ...]:
    """The obligations that the targets name. Raises TargetError if there is none."""
    found = obligations(targets)
    if not found:
        raise TargetError("there is no obligation to judge")
    return found


def exit_code(judgements: Sequence[Judgement]) -> int:
    """What the judgements come to. None at all is no success."""
    if not judgements:
        return UNUSABLE
    if all(judgement.ok for judgement in judgements):
        return AS_EXPECTED
    wrong = [judgement for judgement in judgements if not judgement.ok and judgement.verdict is not Verdict.UNKNOWN]
    return WRONG if wrong else OPEN
