"""One call's operations, issued on a device one by one, each checked against its buffers before it is."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from kvstage_model.language.buffers import Buffer, Paged, Rows
from kvstage_model.language.fast_dataclass import fast_dataclass
from kvstage_model.language.operations import (
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

from ..devices.device import Device, Index
from ..devices.named_streams import OWN_STREAMS
from ..errors import SchemeError
from .failures import asking
from .pending import Pending
from .row_numbers import Addresses

Bound = tuple[Any, int, int]
"""A buffer's handle, slots, and rows a slot."""


@fast_dataclass(frozen=True, slots=True)
class Binding:
    """What the names in a scheme stand for in one call: its buffers' memory and its events; and the size of what it moves."""

    memory: dict[str, Bound]
    events: dict[tuple[str, int], Any]
    row_bytes: int
    length: int


@fast_dataclass(frozen=True, slots=True)
class Order:
    """What the call comes after: the caller's work, as `Device.order_after` takes it, and earlier calls on other streams.

    `streams` are those that have work of the call: empty at first, and filled as work is issued.
    """

    after: object
    earlier: Collection[Pending]
    streams: list[str]


class Performer:
    """One call on one device, and the counts of what it has issued."""

    def __init__(self, device: Device[Any, Any], addresses: Addresses, binding: Binding, order: Order) -> None:
        self.copies = 0
        self.waits = 0
        self.bytes = 0
        self.launches = 0
        self._device = device
        self._addresses = addresses
        self._memory = binding.memory
        self._events = binding.events
        self._row_bytes = binding.row_bytes
        self._length = binding.length
        self._order = order
        self._streams = order.streams

    def perform(self, operations: Iterable[Operation]) -> None:
        """Issues operations, one after the other."""
        how = _HOW
        for operation in operations:
            how.get(type(operation), _refuse)(self, operation)

    def _begin(self, stream: str) -> None:
        """The first work of the call on a stream: it comes after the caller's, and that of earlier calls elsewhere."""
        self._device.order_after(stream, self._order.after)
        for pending in self._order.earlier:
            pending.precede(stream)
        self._streams.append(stream)  # now: a call whose `after` is refused has left nothing on the stream

    def _copy(self, copy: Copy) -> None:
        stream = OWN_STREAMS[copy.stream]
        if stream not in self._streams:
            self._begin(stream)
        source, target = copy.source, copy.target
        if source.count != target.count:
            _refuse_lengths(copy, source.count, target.count)
        self._device.copy(stream, self._view(source), self._view(target))
        self.copies += 1
        self.bytes += source.count * self._row_bytes

    def _copy_batch(self, batch: CopyBatch) -> None:
        """One by one, in the order of the stream: more order than the batch promises."""
        for source, target in batch.copies:
            self._copy(Copy(batch.stream, source, target))

    def _gather(self, kernel: Gather) -> None:
        stream = OWN_STREAMS[kernel.stream]
        if stream not in self._streams:
            self._begin(stream)
        source, index = self._paged(kernel.source, kernel.target, kernel)
        self._device.gather(stream, source, index, self._view(kernel.target))
        self._launched(index)

    def _scatter(self, kernel: Scatter) -> None:
        stream = OWN_STREAMS[kernel.stream]
        if stream not in self._streams:
            self._begin(stream)
        target, index = self._paged(kernel.target, kernel.source, kernel)
        self._device.scatter(stream, self._view(kernel.source), target, index)
        self._launched(index)

    def _launched(self, index: Index) -> None:
        self.launches += 1
        self.bytes += len(index) * self._row_bytes

    def _host_copy(self, copy: HostCopy) -> None:
        source, target = copy.source, copy.target
        if source.count != target.count:
            _refuse_lengths(copy, source.count, target.count)
        self._device.host_copy(self._view(source), self._view(target))

    def _synchronize(self, wait: SyncStream) -> None:
        asking(self._device, self._device.synchronize, OWN_STREAMS[wait.stream])
        self.waits += 1

    def _record(self, record: RecordEvent) -> None:
        self._device.record(self._event(record.event), OWN_STREAMS[record.stream])

    def _sync_event(self, wait: SyncEvent) -> None:
        asking(self._device, self._device.wait, self._event(wait.event))
        self.waits += 1

    def _wait_event(self, wait: WaitEvent) -> None:
        stream = OWN_STREAMS[wait.stream]
        if stream not in self._streams:
            self._begin(stream)
        self._device.wait_event(stream, self._event(wait.event))

    def _event(self, event: Event) -> Any:
        if event.call != 0:
            raise SchemeError(f"event {event.name!r} says that it is of call {event.call}: leave `call` out, it is the model's own")
        key = (event.name, event.index)
        found = self._events.get(key)
        if found is None:
            found = self._events[key] = self._device.event()
        return found

    def _view(self, rows: Rows) -> Any:
        handle, slots, length = self._bound(rows.buffer)
        slot, start = rows.slot, rows.start
        stop = start + rows.count
        if not (0 <= slot < slots and 0 <= start <= stop <= length):  # indexing would wrap or clip, and move other rows
            raise SchemeError(
                f"rows [{start}, {stop}) of slot {slot} are not inside {rows.buffer.name!r}, {slots} slots of {length} rows: "
                "correct the scheme; `kvstage prove` finds such rows"
            )
        return handle[slot, start:stop]

    def _bound(self, buffer: Buffer) -> Bound:
        found = self._memory.get(buffer.name)
        if found is None:
            raise SchemeError(f"the scheme names the buffer {buffer.name!r}, which is none of its own: add it to `buffers`")
        return found

    def _paged(self, paged: Paged, packed: Rows, kernel: Operation) -> tuple[Any, Index]:
        """The pool, and the numbers of the rows that a kernel reaches in it."""
        if paged.count != packed.count:
            _refuse_lengths(kernel, paged.count, packed.count)
        first, last = paged.first, paged.first + paged.count
        if not 0 <= first <= last <= self._length:
            raise SchemeError(
                f"{type(kernel).__name__} of rows [{first}, {last}) of a transfer of {self._length}: correct the scheme"
            )
        handle, slots, length = self._bound(paged.buffer)
        return handle, self._addresses.of(paged, slots, length, kernel)


def _refuse_lengths(operation: Operation, rows: int, places: int) -> None:
    kind = type(operation).__name__
    raise SchemeError(f"{kind} of {rows} rows to {places} rows: the scheme must name as many rows on both sides")


def _refuse(_: Performer, operation: Operation) -> None:
    raise SchemeError(
        f"the library can't perform {type(operation).__name__}: "
        "a scheme that it runs copies, gathers, scatters, records and waits, and leaves the rest to its caller"
    )


_HOW: dict[type, Callable[[Performer, Any], None]] = {
    Copy: Performer._copy,
    CopyBatch: Performer._copy_batch,
    Gather: Performer._gather,
    Scatter: Performer._scatter,
    HostCopy: Performer._host_copy,
    SyncStream: Performer._synchronize,
    RecordEvent: Performer._record,
    SyncEvent: Performer._sync_event,
    WaitEvent: Performer._wait_event,
}
"""Functions, not methods bound to one performer: that would be a cycle, which keeps a call's memory until it is collected."""
