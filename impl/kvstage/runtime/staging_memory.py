"""The staging memory of schemes: kept from call to call, and let go if a budget needs it for something else."""

from collections.abc import Callable, Hashable, Iterator
from math import prod

import torch

from kvstage_model.language.buffers import Buffer, Memory

from .memory_budget import Buffers, Loan

Key = tuple[Hashable, str, Memory]
"""What a scheme is kept by, and a buffer of it."""
Layout = tuple[int, int, int]
"""Slots, rows of a slot, bytes of a row."""


class Staging:
    """Staging memory by scheme and buffer, for one call at a time.

    Between calls nothing is under way on what the host addresses: a scheme that stages there makes all its waits inside its
    call. So what is of other schemes than the one that asks may go back, and does if pinned memory runs short. Device
    memory may still be in use, by one stream, which does its work in order: the next call of the scheme comes after it.

    But a scheme whose rows a stream of the caller's uses may return with copies under way on any of its memory, which only
    its next call's own waits are for, with slots where they are now. Such calls are `left`; `quiet` waits for them before
    memory is laid out anew or goes back.
    """

    def __init__(self, buffers: Buffers, quiet: Callable[[], object]) -> None:
        self._buffers = buffers
        self._quiet = quiet
        self._kept: dict[Key, tuple[Loan, Layout]] = {}
        self._asking: Hashable = None
        buffers.may_recall(self._idle_pinned, self._recall)

    def take(self, scheme: Hashable, buffer: Buffer, row_bytes: int) -> torch.Tensor:
        """Memory for a buffer, [slots, rows, row_bytes]: the last call's if it suffices. Raises what `Buffers.take` does."""
        key, layout = (scheme, buffer.name, buffer.memory), (buffer.slots, buffer.rows, row_bytes)
        size = prod(layout)
        loan, before = self._kept.get(key, (None, layout))
        if before != layout:
            self._quiet()
        if loan is None or len(loan.tensor) < size:
            if loan is not None:
                del self._kept[key]
                loan.give_back()
                del loan  # so that it can be freed, if that is what it takes
            self._asking = scheme
            try:
                loan = self._buffers.take(buffer.memory, size)
            finally:
                self._asking = None
        self._kept[key] = loan, layout
        return loan.tensor[:size].view(layout)

    def give_up(self) -> list[Loan]:
        """All of it, to be given back by the one that knows when nothing is under way on it."""
        kept, self._kept = [loan for loan, _ in self._kept.values()], {}
        return kept

    def _idle(self) -> Iterator[tuple[Key, Loan]]:
        return ((key, loan) for key, (loan, _) in self._kept.items() if key[0] != self._asking)

    def _idle_pinned(self) -> int:
        return sum(len(loan.tensor) for key, loan in self._idle() if key[2] is Memory.PINNED)

    def _recall(self) -> None:
        self._quiet()
        for key, loan in list(self._idle()):
            if key[2] is Memory.PINNED:
                del self._kept[key]
                loan.give_back()
