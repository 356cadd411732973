"""Where kernels reach: the rows of a pool by number, from a scheme's own formula, read for all rows of a kernel at once."""

from typing import Any

import numpy as np

from kvstage_model.language.buffers import Paged

from ..devices.device import Index
from ..devices.row_cache import Remembered
from ..errors import SchemeError


class Addresses:
    """Finds the row numbers of kernels, and remembers them: an index may not be written to."""

    def __init__(self) -> None:
        self._found: Remembered[Index] = Remembered()

    def of(self, paged: Paged, slots: int, rows: int, kernel: object) -> Index:
        """The numbers of the rows that `kernel` reaches in a pool of so many slots, and rows a slot. Raises SchemeError."""
        key = (paged.first, paged.count, slots, rows)
        return self._found.of(paged.rows, key, paged.count, lambda: _numbers(paged, slots, rows, kernel))


def _numbers(paged: Paged, slots: int, rows: int, kernel: object) -> Index:
    address: Any = paged.rows.address
    slot, row = address(np.arange(paged.first, paged.first + paged.count))
    index: Index = slot * rows + row
    if len(index) and (slot.min() < 0 or slot.max() >= slots or row.min() < 0 or row.max() >= rows):
        raise SchemeError(f"{type(kernel).__name__} reaches rows that {paged.buffer.name!r} does not have: correct its address")
    index.flags.writeable = False
    return index
