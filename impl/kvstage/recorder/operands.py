"""What a recorder is given as operands, and the operations that they make."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Generic, SupportsIndex, TypeVar

import numpy as np
import torch

from kvstage_model.language.buffers import Access, Buffer, Listed, Paged, Rows
from kvstage_model.language.operations import (
    Copy,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    OnStream,
    Operation,
    Scatter,
    SyncStream,
    stream_of,
)
from kvstage_model.ordering.program import Issued

from ..devices.device import Index
from ..devices.named_streams import OWN
from ..errors import KVStageError
from .memory import RecordedBuffers

B = TypeVar("B")


class RecorderError(KVStageError):
    """Something can't be recorded: an operand that doesn't say where its bytes are, or two host threads at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Operand(Generic[B]):
    """A handle of the device inside, and what it is a handle on: a whole buffer, or a run of its rows."""

    handle: B
    buffer: Buffer
    rows: Rows | None = None

    def __getitem__(self, place: tuple[int, slice]) -> "Operand[B]":
        """The run of rows `[slot, start:stop]`; of any other place what the handle inside gives."""
        handle: Any = self.handle
        match place:
            case (SupportsIndex() as slot, slice(start=SupportsIndex() as start, stop=SupportsIndex() as stop, step=None)):
                at, first, last = index(slot), index(start), index(stop)
                if self.rows is None and min(at, first) >= 0:
                    return Operand(handle[place], self.buffer, Rows(self.buffer, at, first, last - first))
        inside: Operand[B] = handle[place]
        return inside


def inside(operand: Operand[B] | B) -> B:
    """The operand as the device inside takes it."""
    return operand.handle if isinstance(operand, Operand) else operand


def by_schemes_names(program: Sequence[Issued]) -> list[Issued]:
    """The program with the library's own streams called as its schemes call them, but for those that a caller's is called like."""
    names = {stream_of(issued.operation) for issued in program}

    def named(issued: Issued) -> Issued:
        operation = issued.operation
        if not isinstance(operation, OnStream | SyncStream) or not operation.stream.startswith(OWN):
            return issued
        name = operation.stream.removeprefix(OWN)
        return issued if name in names else replace(issued, operation=replace(operation, stream=name))

    return [named(issued) for issued in program]


def copied(memories: RecordedBuffers, stream: str, source: object, target: object) -> Copy | Launch:
    """A copy; if one side has gaps, a kernel that reads and writes the same rows."""
    origin, place = rows_of(memories, source), rows_of(memories, target)
    return Copy(stream, *origin, *place) if len(origin) == len(place) == 1 else Launch(stream, origin, place)


def host_copied(memories: RecordedBuffers, source: object, target: object) -> Sequence[Operation]:
    """The host's copy; if one side has gaps, its reads and writes."""
    origin, place = rows_of(memories, source), rows_of(memories, target)
    return (HostCopy(*origin, *place),) if len(origin) == len(place) == 1 else (*map(HostRead, origin), *map(HostWrite, place))


def gathered(memories: RecordedBuffers, stream: str, pool: object, index: Index, packed: object) -> Gather | Launch:
    """A gather; if one side is no view, a kernel that reads and writes the same rows."""
    reached, rows = _reached(memories, pool, index), rows_of(memories, packed)
    if isinstance(reached, Paged) and isinstance(packed, Operand) and len(rows) == 1:
        return Gather(stream, reached, rows[0])
    return Launch(stream, _all(reached), rows)


def scattered(memories: RecordedBuffers, stream: str, packed: object, pool: object, index: Index) -> Scatter | Launch:
    """A scatter; if one side is no view, a kernel that reads and writes the same rows."""
    rows, reached = rows_of(memories, packed), _reached(memories, pool, index)
    if isinstance(reached, Paged) and isinstance(packed, Operand) and len(rows) == 1:
        return Scatter(stream, rows[0], reached)
    return Launch(stream, rows, _all(reached))


def rows_of(memories: RecordedBuffers, operand: object) -> tuple[Rows, ...]:
    """The rows of an operand: one run, if it has no gaps. Raises RecorderError."""
    if isinstance(operand, Operand):
        buffer = operand.buffer
        return tuple(buffer.at(slot, 0, buffer.rows) for slot in range(buffer.slots)) if operand.rows is None else (operand.rows,)
    if isinstance(operand, torch.Tensor | np.ndarray):
        return memories.bytes_of(operand)
    raise RecorderError(f"a {type(operand).__name__} can't be recorded: give runs of rows of a view, tensors or arrays")


def _reached(memories: RecordedBuffers, pool: object, index: Index) -> Paged | tuple[Rows, ...]:
    """The rows of a pool that a kernel reaches."""
    if isinstance(pool, torch.Tensor | np.ndarray):
        return memories.reached(pool, index)
    if not isinstance(pool, Operand) or pool.rows is not None:
        raise RecorderError("a recorded kernel must reach a pool, which is a whole view, a tensor or an array")
    slots, rows = divmod(index, pool.buffer.rows)
    places = tuple(zip(slots.tolist(), rows.tolist(), strict=True))
    return Paged(pool.buffer, Listed(places), 0, len(places))


def _all(pool: Paged | tuple[Rows, ...]) -> tuple[Access, ...]:
    return (pool,) if isinstance(pool, Paged) else pool
