"""Which memory a recorded operation touches: buffers by address, so that what two views share is one buffer.

A view is a buffer as it is, with its slots and rows. A tensor or an array that is an operand by itself is part of the
memory that holds it, byte by byte. If two of them share a byte, or one is a byte's and copies go between it and another,
all of those are told in pieces of one size: the largest that measures all that was touched there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.language.buffers import Buffer, Memory, Rows
from kvstage_model.ordering.program import Issued

from ..checked.byte_runs import runs, strided_runs
from ..checked.host_view import plain
from ..devices.device import Index
from .row_units import Lies, RowUnits

Array: TypeAlias = torch.Tensor | NDArray[Any]
"""An operand that says where its bytes are."""


@dataclass(frozen=True, slots=True)
class _Strided:
    """Where the elements of a tensor or an array lie, in bytes, and the first and last address of the memory that holds them."""

    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    size: int
    memory: tuple[int, int]


class RecordedBuffers:
    """The buffers of one recorded device. Keeps the memory of all of them, so that no other one gets its address."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[object, ...], Buffer] = {}
        self._lies: dict[Buffer, Lies] = {}
        self._kept: list[object] = []
        self._names: dict[int, str] = {}
        self._allocated: dict[int, tuple[int, Memory]] = {}

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """What the buffer is called whose first byte is the tensor's, from its next use on."""
        self._names[plain(tensor).data_ptr()] = name

    def allocated(self, memory: Memory, tensor: torch.Tensor) -> None:
        """Remembers which kind of memory this is."""
        bare = plain(tensor)
        self._allocated[bare.data_ptr()] = bare.nbytes, memory

    def forget(self) -> None:
        """Lets go of all memory, and of what it was called by itself: numbers begin anew."""
        for each in (self._buffers, self._lies, self._kept):
            each.clear()

    def view(self, memory: Memory, tensor: torch.Tensor) -> Buffer:
        """The buffer that a view [slots, rows, row bytes] of this tensor is, or would be."""
        bare = plain(tensor)
        key = (memory, bare.data_ptr(), bare.shape, bare.stride())
        if key not in self._buffers:
            found = _strided(bare)
            reach = sum((count - 1) * step for count, step in zip(found.shape, found.steps, strict=True)) + found.size
            (slot, row, _), width = found.steps, found.shape[2] * found.size
            lies = Lies(found.start, found.start + reach, slot, row, width)
            self._add(key, Buffer(self._named(found.start, 1, memory), memory, *found.shape[:2]), lies, tensor)
        return self._buffers[key]

    def bytes_of(self, operand: Array) -> tuple[Rows, ...]:
        """The bytes of a tensor or an array, as rows of one byte: runs that don't touch one another."""
        found = _strided(operand)
        return self._inside(found, operand, strided_runs(found.start, found.shape, found.steps, found.size))

    def reached(self, pool: Array, index: Index) -> tuple[Rows, ...]:
        """The bytes of a pool [slots, rows, width] that a kernel reaches, as rows of one byte."""
        found = _strided(pool)
        slots, rows = np.divmod(np.asarray(index, np.int64), max(found.shape[1], 1))
        starts = found.start + slots * found.steps[0] + rows * found.steps[1]
        return self._inside(found, pool, runs(starts, found.shape[2] * found.size))

    def resolved(self, program: Sequence[Issued]) -> tuple[Issued, ...]:
        """The program with buffers that share no byte. Views that share none, and copy among themselves, stay as they are."""
        pieces = RowUnits(self._lies, program)
        return tuple(replace(issued, operation=pieces.changed(issued.operation)) for issued in program)

    def _inside(self, found: _Strided, owner: Array, reached: Iterable[Rows]) -> tuple[Rows, ...]:
        start, stop = found.memory
        key = ("bytes", start, stop)
        if key not in self._buffers:
            on_host = not isinstance(owner, torch.Tensor) or owner.device.type == "cpu"
            known = (memory for at, (size, memory) in self._allocated.items() if at < stop and start < at + size)
            memory = next(known, Memory.PAGEABLE if on_host else Memory.DEVICE)
            buffer = Buffer(self._named(start, stop - start, memory), memory, 1, stop - start)
            self._add(key, buffer, Lies(start, stop, 0, 1, width=1, bytewise=True), owner)
        return tuple(self._buffers[key].at(0, rows.start - start, rows.count) for rows in reached)

    def _named(self, start: int, size: int, memory: Memory) -> str:
        inside = (name for at, name in self._names.items() if start <= at < start + size)
        return next(inside, f"{memory.value} {len(self._buffers)}")

    def _add(self, key: tuple[object, ...], buffer: Buffer, lies: Lies, owner: object) -> None:
        self._buffers[key] = buffer
        self._lies[buffer] = lies
        self._kept.append(owner)


def _strided(operand: Array) -> _Strided:
    if isinstance(operand, torch.Tensor):
        bare, size = plain(operand), operand.element_size()
        return _Strided(bare.data_ptr(), tuple(bare.shape), tuple(step * size for step in bare.stride()), size, _held(bare))
    start, size = int(operand.__array_interface__["data"][0]), operand.itemsize
    return _Strided(start, operand.shape, operand.strides, size, _held(operand))


def _held(operand: Array) -> tuple[int, int]:
    """First and last address of the memory that an operand is part of."""
    owner: Any = operand
    while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray | torch.Tensor):
        owner = owner.base
    if isinstance(owner, torch.Tensor):
        storage = plain(owner).untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    start = int(owner.__array_interface__["data"][0])
    return start, start + int(owner.nbytes)
