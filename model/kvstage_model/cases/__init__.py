"""Public staging bugs, as schemes: each with its fix, the edge that was missing, and where it was reported.

Read `case` first, then any of the files: they are sorted by the missing edge. `catalogue` lists all of them, and what is an
instance of another, or out of reach and why. To add a case from a bug report, write its loop as in `docs/schemes.md`, with a fix,
in the file of its edge, and enter it there in `CASES`.
"""

from .case import Case, Fix
from .catalogue import CASES, INSTANCES, OUT_OF_REACH

__all__ = ["CASES", "INSTANCES", "OUT_OF_REACH", "Case", "Fix"]
