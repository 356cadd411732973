"""What the cases are written with: buffers of single rows, and numbers of steps."""

from typing import Annotated, TypeAlias

from ..language.buffers import Buffer, Memory, Rows
from ..language.ranges import AtLeast

Steps: TypeAlias = Annotated[int, AtLeast(0)]
"""A number of steps: batches, iterations, transfers."""


def pinned(name: str, slots: int = 1) -> Buffer:
    """Pinned memory at the host, in slots of one row."""
    return Buffer(name, Memory.PINNED, slots, 1)


def device(name: str, slots: int = 1) -> Buffer:
    """Memory of the device, in slots of one row."""
    return Buffer(name, Memory.DEVICE, slots, 1)


def row(buffer: Buffer, slot: int = 0) -> Rows:
    """The one row of a slot."""
    return buffer.at(slot, 0, 1)
