"""Runs a scheme on a device. There is no loop and no address formula here: both are the scheme's."""

from collections.abc import Callable
from typing import Any

import torch

from kvstage_model.operations import Buffer, Copy, HostCopy, Memory, Operation, Rows, SyncStream
from kvstage_model.scheme import Scheme

from .device import Device
from .errors import SchemeError
from .transfer import Stats


class Runtime:
    """A device and the staging memory that schemes use on it, one call after another.

    Staging memory is kept by buffer name, and replaced when a call needs more. The old one is dropped between calls,
    when everything that was issued on it has ended, because a scheme waits for its own copies before it returns. A
    call that was interrupted may have left copies under way: its staging memory is never used again.
    """

    def __init__(self, device: Device[Any]) -> None:
        self._device = device
        self._staging: dict[tuple[str, Memory], torch.Tensor] = {}

    def run(self, scheme: Scheme, pool: torch.Tensor, host: torch.Tensor) -> Stats:
        """Performs the steps and the epilogue. `pool` and `host` are uint8 [slots, rows, row_bytes].

        Raises SchemeError where the scheme has no result to bind them to, or binds them to other sizes.
        """
        given = self._given(scheme, pool, host)
        memory = {buffer.name: self._memory(buffer, given, pool.shape[2]) for buffer in scheme.buffers}
        run = _Run(self._device, memory, pool.shape[2])
        try:
            run.perform(scheme)
        except BaseException:
            self._staging.clear()
            raise
        return Stats(run.copies, run.waits, run.bytes)

    def _given(self, scheme: Scheme, pool: torch.Tensor, host: torch.Tensor) -> dict[str, torch.Tensor]:
        if scheme.result is None:
            raise SchemeError(f"scheme {scheme.name!r} states no result, which says what buffers are the caller's: give it one")
        given = {scheme.result.pool.name: (scheme.result.pool, pool), scheme.result.host.name: (scheme.result.host, host)}
        for buffer, tensor in given.values():
            if (buffer.slots, buffer.rows) != tensor.shape[:2]:
                raise SchemeError(
                    f"scheme {scheme.name!r} has {buffer.slots} slots of {buffer.rows} rows in {buffer.name!r}, "
                    f"and the caller's has {tensor.shape[0]} of {tensor.shape[1]}: build it from the rows it is given"
                )
        return {name: tensor for name, (_, tensor) in given.items()}

    def _memory(self, buffer: Buffer, given: dict[str, torch.Tensor], row_bytes: int) -> tuple[Any, int, int]:
        tensor = given.get(buffer.name)
        if tensor is None:
            tensor = self._staged(buffer, buffer.slots * buffer.rows * row_bytes).view(buffer.slots, buffer.rows, row_bytes)
        return self._device.view(buffer.memory, tensor), buffer.slots, buffer.rows

    def _staged(self, buffer: Buffer, size: int) -> torch.Tensor:
        key = (buffer.name, buffer.memory)
        kept = self._staging.get(key)
        if kept is None or len(kept) < size:
            kept = self._staging[key] = self._device.allocate(buffer.memory, size)
        return kept[:size]


class _Run:
    """One call: the buffers' memory by name, and the counts of what was issued."""

    def __init__(self, device: Device[Any], memory: dict[str, tuple[Any, int, int]], row_bytes: int) -> None:
        self.copies = 0
        self.waits = 0
        self.bytes = 0
        self._device = device
        self._memory = memory
        self._row_bytes = row_bytes

    def perform(self, scheme: Scheme) -> None:
        do: dict[type, Callable[[Any], None]] = {Copy: self._copy, HostCopy: self._host_copy, SyncStream: self._synchronize}
        for i in range(scheme.steps):
            for operation in scheme.step(i):
                do.get(type(operation), _refuse)(operation)
        for operation in scheme.epilogue:
            do.get(type(operation), _refuse)(operation)

    def _copy(self, copy: Copy) -> None:
        self.copies += 1
        self.bytes += copy.source.count * self._row_bytes
        self._device.copy(copy.stream, *self._ends(copy))

    def _host_copy(self, copy: HostCopy) -> None:
        self._device.host_copy(*self._ends(copy))

    def _synchronize(self, wait: SyncStream) -> None:
        self.waits += 1
        self._device.synchronize(wait.stream)

    def _ends(self, copy: Copy | HostCopy) -> tuple[Any, Any]:
        if copy.source.count != copy.target.count:
            kind, rows, places = type(copy).__name__, copy.source.count, copy.target.count
            raise SchemeError(f"{kind} of {rows} rows to {places} rows: the scheme must name as many rows on both sides")
        return self._view(copy.source), self._view(copy.target)

    def _view(self, rows: Rows) -> Any:
        handle, slots, length = self._memory[rows.buffer.name]
        slot, start = rows.slot, rows.start
        stop = start + rows.count
        if not (0 <= slot < slots and 0 <= start <= stop <= length):  # indexing would wrap or clip, and move other rows
            raise SchemeError(
                f"rows [{start}, {stop}) of slot {slot} are not inside {rows.buffer.name!r}, {slots} slots of {length} rows: "
                "correct the scheme; `kvstage prove` finds such rows"
            )
        return handle[slot, start:stop]


def _refuse(operation: Operation) -> None:
    raise SchemeError(f"the library can't perform {type(operation).__name__}: a scheme that it runs copies and waits, nothing else")
