"""What a call took: copies, waits, kernels and bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """What one call asked of the device: asynchronous copies, blocking waits, bytes, and launches of kernels.

    `bytes` counts a row each time that a copy or a kernel moves it.
    """

    copies: int = 0
    waits: int = 0
    bytes: int = 0
    launches: int = 0

    def __add__(self, other: "Stats") -> "Stats":
        """What two calls asked for together."""
        return Stats(self.copies + other.copies, self.waits + other.waits, self.bytes + other.bytes, self.launches + other.launches)
