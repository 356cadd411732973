"""Work that fails while the device does it: its error is raised once, and the stream goes on."""

from collections.abc import Callable


def raising_once(move: Callable[[int], None]) -> Callable[[int], None]:
    """The two halves of some work; after an error there is no more of it, so that the run can end and say what was found."""
    failed = False

    def moving(half: int) -> None:
        nonlocal failed
        if failed:
            return
        try:
            move(half)
        except BaseException:
            failed = True
            raise

    return moving
