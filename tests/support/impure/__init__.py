"""Functions that are no functions of their argument: each keeps a state, looks at objects, or asks something that may change.

Every one says "late" in the end, and then a loop around it no longer waits; a proof that runs a few steps with symbols sees
none of it. `IMPURE` has those that a step calls, `MAKERS` those that make one in each call of the scheme.
"""

from . import around, asked, of_objects, of_the_module
from .entered import IMPURE, MAKERS, Late

__all__ = ["IMPURE", "MAKERS", "Late", "around", "asked", "of_objects", "of_the_module"]
