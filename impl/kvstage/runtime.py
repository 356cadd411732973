"""Runs a scheme on a device. There is no loop and no address formula here: both are the scheme's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kvstage_model.buffers import Buffer, Memory, Paged, Rows
from kvstage_model.operations import (
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    Operation,
    RecordEvent,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.scheme import Result, Scheme

from .addresses import Addresses
from .buffers import Buffers, Loan
from .device import Device, Index
from .errors import SchemeError
from .pending import Pending
from .transfer import Stats


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a call asked for, and what it has left under way, if anything."""

    stats: Stats
    pending: Pending | None


class Runtime:
    """A device, and the staging memory and events that schemes use on it, one call after another.

    Both are kept for each scheme by name, from call to call: the proofs are about a sequence of calls of one scheme.
    Staging memory is replaced when a call needs more. The old one goes back between calls, when everything that was
    issued on it has ended: a scheme that has staging memory makes all its waits inside its call.

    A call that breaks off may leave copies under way. All memory that they may touch is kept, and the next call, or
    `settle`, first waits for the streams that they are on: until then none of it is used again.
    """

    def __init__(self, device: Device[Any, Any], buffers: Buffers) -> None:
        self._device = device
        self._buffers = buffers
        self._staging: dict[tuple[str, str, Memory], Loan] = {}
        self._events: dict[str, dict[tuple[str, int], Any]] = {}
        self._addresses = Addresses()
        self._doubtful: list[str] = []
        self._quarantined: list[torch.Tensor] = []
        self._loans: list[Loan] = []

    def submit(
        self, scheme: Scheme, pool: torch.Tensor, host: torch.Tensor, *, after: object = None, loans: Sequence[Loan] = ()
    ) -> Submitted:
        """Performs prologue, steps and epilogue. `pool` and `host` are uint8 [slots, rows, row_bytes].

        A scheme may take a pool without gaps between its blocks for a single slot, so that runs can cross blocks. `after`
        orders each stream of the scheme behind work of the caller, as `Device.order_after` says. `loans` is
        memory under `host` that goes back where the call breaks off. A wait for a stream that is all of the epilogue is
        left to the caller where the scheme has no staging memory: then nothing that the next call of this runtime uses is
        still in use. Raises SchemeError where the scheme has no result to bind them to, binds them to other sizes, or does
        something that can't be run.
        """
        streams: list[str] = []
        try:
            settled = self.settle()
            if scheme.result is None:
                raise SchemeError(f"scheme {scheme.name!r} states no result, which says what buffers are the caller's: give it one")
            given = _given(scheme, scheme.result, pool, host)
            memory = {buffer.name: self._memory(scheme, buffer, given, pool.shape[2]) for buffer in scheme.buffers}
            events = {} if scheme.fresh_events else self._events.setdefault(scheme.name, {})
            run = _Run(self._device, memory, events, self._addresses, pool.shape[2], scheme.result.length, streams, after)
            last = _last_wait(scheme, given)
            for operation in scheme.prologue:
                run.perform(operation)
            for i in range(scheme.steps):
                for operation in scheme.step(i):
                    run.perform(operation)
            for operation in () if last else scheme.epilogue:
                run.perform(operation)
            pending = None
            if last is not None:
                pending = Pending(self._device, last)
                pending.mark(pool, host)
        except BaseException:
            self._break_off(streams, (pool, host), loans)
            raise
        return Submitted(Stats(run.copies, run.waits + settled, run.bytes, run.launches), pending)

    def doubt(self, stream: str, memory: Sequence[torch.Tensor]) -> None:
        """Nobody knows whether the work of a stream has ended: keeps its memory until `settle`."""
        if stream not in self._doubtful:
            self._doubtful.append(stream)
        self._quarantined += memory

    def settle(self) -> int:
        """Waits for all streams in doubt, and lets go of the memory that was kept for their sake: the number of waits."""
        waits = 0
        while self._doubtful:
            if not self._device.closed:  # a closed device has finished its work
                self._device.synchronize(self._doubtful[-1])
                waits += 1
            self._doubtful.pop()
        self._quarantined.clear()
        while self._loans:
            self._loans.pop().give_back()
        return waits

    def _break_off(self, streams: Sequence[str], memory: Sequence[torch.Tensor], loans: Sequence[Loan]) -> None:
        if not streams:  # nothing was issued
            for loan in loans:
                loan.give_back()
            return
        self._loans += [*self._staging.values(), *loans]
        self._staging, self._events = {}, {}
        for stream in streams:
            self.doubt(stream, memory)

    def _memory(self, scheme: Scheme, buffer: Buffer, given: dict[str, torch.Tensor], row_bytes: int) -> "_Bound":
        tensor = given.get(buffer.name)
        if tensor is None:
            staged = self._staged(scheme, buffer, buffer.slots * buffer.rows * row_bytes)
            tensor = staged.view(buffer.slots, buffer.rows, row_bytes)
        return self._device.view(buffer.memory, tensor), buffer.slots, buffer.rows

    def _staged(self, scheme: Scheme, buffer: Buffer, size: int) -> torch.Tensor:
        key = (scheme.name, buffer.name, buffer.memory)
        kept = self._staging.get(key)
        if kept is None or len(kept.tensor) < size:
            if kept is not None:
                del self._staging[key]
                kept.give_back()
            kept = self._staging[key] = self._buffers.take(buffer.memory, size)
        return kept.tensor[:size]


def _given(scheme: Scheme, result: Result, pool: torch.Tensor, host: torch.Tensor) -> dict[str, torch.Tensor]:
    if (result.pool.slots, result.pool.rows) == (1, pool.shape[0] * pool.shape[1]) and pool.is_contiguous():
        pool = pool.view(1, -1, pool.shape[2])
    given = {result.pool.name: (result.pool, pool), result.host.name: (result.host, host)}
    for buffer, tensor in given.values():
        if (buffer.slots, buffer.rows) != tensor.shape[:2]:
            raise SchemeError(
                f"scheme {scheme.name!r} has {buffer.slots} slots of {buffer.rows} rows in {buffer.name!r}, "
                f"and the caller's has {tensor.shape[0]} of {tensor.shape[1]}: build it from the rows it is given"
            )
    return {name: tensor for name, (_, tensor) in given.items()}


def _last_wait(scheme: Scheme, given: dict[str, torch.Tensor]) -> str | None:
    """The stream whose wait can be left to the caller."""
    own_memory = any(buffer.name not in given for buffer in scheme.buffers)
    if own_memory or len(scheme.epilogue) != 1:
        return None
    last = scheme.epilogue[0]
    return last.stream if isinstance(last, SyncStream) else None


_Bound = tuple[Any, int, int]
"""A buffer's handle, slots, and rows a slot."""


class _Run:
    """One call: the buffers' memory by name, its events, and the counts of what was issued."""

    def __init__(
        self,
        device: Device[Any, Any],
        memory: dict[str, _Bound],
        events: dict[tuple[str, int], Any],
        addresses: Addresses,
        row_bytes: int,
        length: int,
        streams: list[str],
        after: object,
    ) -> None:
        self.copies = 0
        self.waits = 0
        self.bytes = 0
        self.launches = 0
        self._device = device
        self._memory = memory
        self._events = events
        self._addresses = addresses
        self._row_bytes = row_bytes
        self._length = length
        self._streams = streams
        self._after = after
        self._do: dict[type, Callable[[Any], None]] = {
            Copy: self._copy,
            CopyBatch: self._copy_batch,
            Gather: self._gather,
            Scatter: self._scatter,
            HostCopy: self._host_copy,
            SyncStream: self._synchronize,
            RecordEvent: self._record,
            SyncEvent: self._sync_event,
            WaitEvent: self._wait_event,
        }

    def perform(self, operation: Operation) -> None:
        """Issues one operation."""
        self._do.get(type(operation), _refuse)(operation)

    def _begin(self, stream: str) -> None:
        """The first work of the call on a stream: it comes behind the caller's."""
        self._streams.append(stream)
        self._device.order_after(stream, self._after)

    def _copy(self, copy: Copy) -> None:
        if copy.stream not in self._streams:
            self._begin(copy.stream)
        self._device.copy(copy.stream, *self._ends(copy))
        self.copies += 1
        self.bytes += copy.source.count * self._row_bytes

    def _copy_batch(self, batch: CopyBatch) -> None:
        """One by one, in the order of the stream: more order than the batch promises."""
        for source, target in batch.copies:
            self._copy(Copy(batch.stream, source, target))

    def _gather(self, kernel: Gather) -> None:
        if kernel.stream not in self._streams:
            self._begin(kernel.stream)
        source, index = self._paged(kernel.source, kernel.target, kernel)
        self._device.gather(kernel.stream, source, index, self._view(kernel.target))
        self._launched(index)

    def _scatter(self, kernel: Scatter) -> None:
        if kernel.stream not in self._streams:
            self._begin(kernel.stream)
        target, index = self._paged(kernel.target, kernel.source, kernel)
        self._device.scatter(kernel.stream, self._view(kernel.source), target, index)
        self._launched(index)

    def _launched(self, index: Index) -> None:
        self.launches += 1
        self.bytes += len(index) * self._row_bytes

    def _host_copy(self, copy: HostCopy) -> None:
        self._device.host_copy(*self._ends(copy))

    def _synchronize(self, wait: SyncStream) -> None:
        self._device.synchronize(wait.stream)
        self.waits += 1

    def _record(self, record: RecordEvent) -> None:
        self._device.record(self._event(record.event), record.stream)

    def _sync_event(self, wait: SyncEvent) -> None:
        self._device.wait(self._event(wait.event))
        self.waits += 1

    def _wait_event(self, wait: WaitEvent) -> None:
        if wait.stream not in self._streams:
            self._begin(wait.stream)
        self._device.wait_event(wait.stream, self._event(wait.event))

    def _event(self, event: Event) -> Any:
        key = (event.name, event.index)
        found = self._events.get(key)
        if found is None:
            found = self._events[key] = self._device.event()
        return found

    def _ends(self, copy: Copy | HostCopy) -> tuple[Any, Any]:
        if copy.source.count != copy.target.count:
            _refuse_lengths(copy, copy.source.count, copy.target.count)
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

    def _paged(self, paged: Paged, packed: Rows, kernel: Operation) -> tuple[Any, Index]:
        """The pool, and the numbers of the rows that a kernel reaches in it."""
        if paged.count != packed.count:
            _refuse_lengths(kernel, paged.count, packed.count)
        first, last = paged.first, paged.first + paged.count
        if not 0 <= first <= last <= self._length:
            raise SchemeError(
                f"{type(kernel).__name__} of rows [{first}, {last}) of a transfer of {self._length}: correct the scheme"
            )
        handle, slots, length = self._memory[paged.buffer.name]
        return handle, self._addresses.of(paged, slots, length, kernel)


def _refuse_lengths(operation: Operation, rows: int, places: int) -> None:
    kind = type(operation).__name__
    raise SchemeError(f"{kind} of {rows} rows to {places} rows: the scheme must name as many rows on both sides")


def _refuse(operation: Operation) -> None:
    raise SchemeError(
        f"the library can't perform {type(operation).__name__}: "
        "a scheme that it runs copies, gathers, scatters, records and waits, and leaves the rest to its caller"
    )
