"""Runs a scheme on a device. There is no loop and no address formula here: both are the scheme's."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import torch

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.fast_dataclass import fast_dataclass
from kvstage_model.language.operations import SyncStream
from kvstage_model.language.scheme import Result, Scheme

from ..devices.device import Device
from ..devices.left_behind import LeftBehind, Work
from ..devices.named_streams import OWN_STREAMS
from ..errors import SchemeError
from .failures import asking
from .memory_budget import Buffers, Loan
from .pending import Pending
from .performer import Binding, Bound, Order, Performer
from .rehearsal import rehearse
from .row_numbers import Addresses
from .staging_memory import Staging
from .stats import Stats


@fast_dataclass(frozen=True, slots=True)
class Submitted:
    """What a call asked for, and what it has left under way, if anything."""

    stats: Stats
    pending: Pending | None


class Runtime:
    """A device, and the staging memory and events that schemes use on it, one call after another.

    Both are kept for each scheme function, from call to call: the proofs are about a sequence of calls of one scheme, with
    slots of one size. Staging memory is laid out anew when a call needs other slots, and replaced when it needs more.

    A call that breaks off may leave copies under way. All memory that they may touch is kept, and the next call, or
    `settle`, first waits for the streams that they are on: until then none of it is used again. It is `quarantined`.

    `under_way` has what calls have left to their callers, the oldest first, until it is taken out. Wherever a call is
    interrupted, what it has issued is there, or in doubt.
    """

    def __init__(self, device: Device[Any, Any], buffers: Buffers) -> None:
        self._device = device
        self._staging = Staging(buffers, self.quiet)
        self._events: dict[Hashable, dict[tuple[str, int], Any]] = {}
        self._addresses = Addresses()
        self._doubtful: list[str] = []
        self._left: list[str] = []
        self._waited = 0  # by calls that are not over
        self.under_way: deque[Pending] = deque()
        self.works: set[Work] = set()  # theirs: all that is known of them once the stager is gone
        self._in_doubt: list[Pending] = []
        self._latest: dict[str, Pending] = {}  # by stream: what is after the latest is after all that went before it
        self.quarantined: list[torch.Tensor] = []
        self._loans: list[Loan] = []

    def submit(
        self,
        scheme: Scheme,
        pool: torch.Tensor,
        host: torch.Tensor,
        *,
        after: object = None,
        loans: Sequence[Loan] = (),
        owner: Hashable = None,
        proved: bool = True,
    ) -> Submitted:
        """Performs prologue, steps and epilogue. `pool` and `host` are uint8 [slots, rows, row_bytes].

        A scheme may take a pool without gaps between its blocks for a single slot, so that runs can cross blocks. `after`
        orders each stream of the scheme after work of the caller, as `Device.order_after` says. Each stream also comes
        after what earlier calls have left under way on others: so calls are in order, whatever streams their schemes use,
        and the host waits for none. `loans` is memory under `host` that goes back if the call breaks off. `owner` is the
        function that made the scheme: what it keeps is its own, whatever its schemes are called; None goes by the name. A scheme
        that is not `proved` is gone through once before anything is issued, and refused if it does what can't be run.

        A wait for a stream that is all of the epilogue is left to the caller if the scheme stages nothing in memory that
        the host addresses. What it stages in device memory must all be on that stream, which is looked at: then the next
        call uses nothing that is still in use, but device memory after it on the same stream ("gather_copy between kernels"
        proves that this is enough). A scheme that stages nothing may use others, if that one waits for them: the wait it
        states is for all of its work. Raises SchemeError if the scheme has no result to bind them to, binds them to other
        sizes, or does something that can't be run.
        """
        streams: list[str] = []
        try:
            self._waited += self.settle()
            if type(scheme) is not Scheme:
                raise SchemeError(
                    f"{type(scheme).__name__} {scheme.name!r} is no plain Scheme: return a Scheme itself, which is what is proved"
                )
            owner = scheme.name if owner is None else owner
            if scheme.result is None:
                raise SchemeError(f"scheme {scheme.name!r} states no result, which says what buffers are the caller's: give it one")
            given = _given(scheme, scheme.result, pool, host)
            row_bytes, length = pool.shape[2], scheme.result.length
            if not proved:
                rehearse(scheme, self._addresses, row_bytes, length)
            staged: list[torch.Tensor] = []
            memory = {buffer.name: self._memory(owner, buffer, given, staged, row_bytes) for buffer in scheme.buffers}
            events = {} if scheme.fresh_events else self._events.setdefault(owner, {})
            order = Order(after, self._latest.values(), streams)
            run = Performer(self._device, self._addresses, Binding(memory, events, row_bytes, length), order)
            run.perform(scheme.prologue)
            for i in range(scheme.steps):
                run.perform(scheme.step(i))
            last = _last_wait(scheme, given, streams)
            run.perform(() if last else scheme.epilogue)
            pending = None if last is None else self._marked(last, pool, host, *staged)
            if scheme.result.target_on is not None or scheme.result.source_on is not None:
                self._left += [stream for stream in streams if stream not in self._left]
            waits, self._waited = run.waits + self._waited, 0
            return Submitted(Stats(run.copies, waits, run.bytes, run.launches), pending)
        except BaseException:
            self._break_off(streams, (pool, host), loans)
            raise

    @property
    def in_doubt(self) -> bool:
        """Whether there is work that a call has issued before it broke off, and that has not been waited for."""
        return bool(self._doubtful)

    def forget(self, pending: Pending) -> None:
        """Takes out work that has ended; or failed, or was not waited for to its end: its memory is kept until `settle`."""
        if not pending.ended:  # in doubt first: an interrupt finds it in one list or in both
            self._in_doubt.append(pending)
            self._doubt(pending.stream, pending.work.memory)
            pending.forget()
        self.works.discard(pending.work)
        if self.under_way and self.under_way[0] is pending:  # or else a hook was told of its end, and has called the stager
            self.under_way.popleft()

    def leave_behind(self, left: LeftBehind) -> Callable[[], None]:
        """What hands all that may be under way over to the device, for when the stager is gone: it must not keep that alive."""
        return partial(left.add, self.works, self._doubtful, self.quarantined)

    def settle(self) -> int:
        """Waits for all streams in doubt, and lets go of the memory that was kept for their sake: the number of waits."""
        waits = 0
        while self._doubtful:
            if not self._device.closed:  # a closed device has finished its work
                asking(self._device, self._device.synchronize, self._doubtful[-1])
                waits += 1
            self._latest.pop(self._doubtful.pop(), None)  # if it failed, a stream that waits for it may fail again
        self.quarantined.clear()
        while self._in_doubt:
            self._in_doubt.pop().free()
        while self._loans:
            self._loans.pop().give_back()
        return waits

    def quiet(self) -> None:
        """Waits for the streams that calls may have left at work on staging memory, since their rows are used on a stream."""
        while self._left:
            if not self._device.closed:
                asking(self._device, self._device.synchronize, self._left[-1])
                self._waited += 1
            self._left.pop()

    def _break_off(self, streams: Sequence[str], memory: Sequence[torch.Tensor], loans: Sequence[Loan]) -> None:
        if not streams:  # nothing was issued
            for loan in loans:
                loan.give_back()
            return
        staged = self._staging.give_up()
        self._loans += [*staged, *loans]
        self._events = {}
        for stream in (*streams, *self._left):
            self._doubt(stream, (*memory, *(loan.tensor for loan in staged)))

    def _doubt(self, stream: str, memory: Sequence[torch.Tensor]) -> None:
        self.quarantined += memory
        if stream not in self._doubtful:
            self._doubtful.append(stream)

    def _marked(self, stream: str, *memory: torch.Tensor) -> Pending:
        """What the call leaves under way: known here from the moment on that it can be asked for."""
        pending = Pending(self._device, stream)
        self.works.add(pending.work)
        pending.mark(*memory)
        self._latest[stream] = pending
        self.under_way.append(pending)
        return pending

    def _memory(
        self, owner: Hashable, buffer: Buffer, given: dict[str, torch.Tensor], staged: list[torch.Tensor], row_bytes: int
    ) -> Bound:
        tensor = given.get(buffer.name)
        if tensor is None:
            tensor = self._staging.take(owner, buffer, row_bytes)
            staged.append(tensor)
        return self._device.view(buffer.memory, tensor), buffer.slots, buffer.rows


def _given(scheme: Scheme, result: Result, pool: torch.Tensor, host: torch.Tensor) -> dict[str, torch.Tensor]:
    slots, rows, row_bytes = pool.shape
    if slots > 1 and result.pool.slots == 1 and result.pool.rows == slots * rows and pool.is_contiguous():
        pool = pool.view(1, -1, row_bytes)
    for buffer, tensor in ((result.pool, pool), (result.host, host)):
        slots, rows, _ = tensor.shape
        if slots != buffer.slots or rows != buffer.rows:
            raise SchemeError(
                f"scheme {scheme.name!r} has {buffer.slots} slots of {buffer.rows} rows in {buffer.name!r}, "
                f"and the caller's has {slots} of {rows}: build it from the rows it is given"
            )
    return {result.pool.name: pool, result.host.name: host}


def _last_wait(scheme: Scheme, given: dict[str, torch.Tensor], streams: Sequence[str]) -> str | None:
    """The stream whose wait can be left to the caller, of the streams that the call has put work on."""
    own = [buffer.memory for buffer in scheme.buffers if buffer.name not in given]
    if len(scheme.epilogue) != 1 or any(memory is not Memory.DEVICE for memory in own):
        return None
    last = scheme.epilogue[0]
    if not isinstance(last, SyncStream):
        return None
    waited = OWN_STREAMS[last.stream]
    return None if own and any(stream != waited for stream in streams) else waited
