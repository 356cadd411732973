"""What was worked out for the rows of a kernel, kept for the next call: the caches of a step have one table."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from .device import Index

V = TypeVar("V")

MOST = 2**19
"""Rows whose results are kept in all, some bytes each: every piece of a long history, in two widths of rows."""
LEAST = 256
"""Rows that a result counts for at least: beside its rows it takes the memory of some objects. Each step of decoding adds one
of a single row."""


def unchanging(index: Index) -> bool:
    """Whether an array can't be written to, nor the memory that it is a view of."""
    owner: object = index
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


class Remembered(Generic[V]):
    """Results by an owner, which never changes, and some numbers; the longest unused go first. Not for two threads at once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, ...], tuple[object, int, V]] = OrderedDict()
        self._rows = 0

    def of(self, owner: object, numbers: tuple[int, ...], rows: int, work: Callable[[], V]) -> V:
        """The result for that owner, by identity, and those numbers: the one of before, or what `work` says now."""
        key = (id(owner), *numbers)  # the owner is kept with its result, so its id stays its own
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found[2]
        value = work()
        rows = max(rows, LEAST)
        self._kept[key] = owner, rows, value
        self._rows += rows
        while self._rows > MOST and len(self._kept) > 1:
            self._rows -= self._kept.popitem(last=False)[1][1]
        return value
