"""How long a wait may take."""

from math import isnan
from numbers import Real

from ..errors import RangeError, shown


def check_timeout(timeout: object) -> None:
    """Raises RangeError for what is neither None nor a number of seconds; one below 0 is over at once."""
    if timeout is None:
        return
    try:
        fits = isinstance(timeout, Real) and not isnan(float(timeout))
    except (OverflowError, ValueError):
        fits = False
    if not fits:
        raise RangeError(f"timeout is {shown(timeout)}: pass a number of seconds, or None to wait for as long as it takes")
