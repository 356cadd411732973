"""The staging memory of schemes: kept from call to call, and let go where a budget needs it for something else."""

from collections.abc import Iterator

import torch

from kvstage_model.buffers import Memory

from .buffers import Buffers, Loan

Key = tuple[str, str, Memory]
"""A scheme's name, and a buffer of it."""


class Staging:
    """Staging memory by scheme and buffer, for one call at a time.

    Between calls nothing is under way on what the host addresses: a scheme that stages there makes all its waits inside its
    call. So what is of other schemes than the one that asks may go back, and does where pinned memory runs short. Device
    memory may still be in use, by one stream, which does its work in order: the next call of the scheme comes behind it.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._kept: dict[Key, Loan] = {}
        self._asking: str | None = None
        buffers.may_recall(self._idle_pinned, self._recall)

    def take(self, scheme: str, buffer: str, memory: Memory, size: int) -> torch.Tensor:
        """`size` bytes for a buffer: those of the last call where they suffice. Raises what `Buffers.take` does."""
        key = (scheme, buffer, memory)
        kept = self._kept.get(key)
        if kept is None or len(kept.tensor) < size:
            if kept is not None:
                del self._kept[key]
                kept.give_back()
                del kept  # so that it can be freed, if that is what it takes
            self._asking = scheme
            try:
                kept = self._kept[key] = self._buffers.take(memory, size)
            finally:
                self._asking = None
        return kept.tensor[:size]

    def give_up(self) -> list[Loan]:
        """All of it, to be given back by whoever knows when nothing is under way on it."""
        kept, self._kept = list(self._kept.values()), {}
        return kept

    def _idle(self) -> Iterator[tuple[Key, Loan]]:
        return ((key, loan) for key, loan in self._kept.items() if key[0] != self._asking)

    def _idle_pinned(self) -> int:
        return sum(len(loan.tensor) for key, loan in self._idle() if key[2] is Memory.PINNED)

    def _recall(self) -> None:
        for key, loan in list(self._idle()):
            if key[2] is Memory.PINNED:
                del self._kept[key]
                loan.give_back()
