"""A forked child has no threads and no driver that works: it is refused by name."""

import os

from ..errors import ForkedError


def check_process(made_in: int) -> None:
    """Raises ForkedError in another process than the one of that id."""
    if os.getpid() != made_in:
        raise ForkedError(
            f"this was made in process {made_in}, and this is process {os.getpid()}: streams don't survive a fork; "
            "make a device and a stager in the child, or start it by spawn"
        )
