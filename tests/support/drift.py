"""Watches every run of the library, and says where it is not the run of the scheme that it was given.

Each operation that a `Runtime` issues must be the scheme's, in its order, on its rows, with its events. And where a call
leaves its last wait to the caller, his transfer must have made it when it says that the rows have arrived.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import islice, takewhile
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import torch

from kvstage.devices.named_streams import OWN_STREAMS
from kvstage.recorder.device import RecordingDevice
from kvstage.recorder.operands import by_schemes_names
from kvstage.recorder.times import RecordedOperation
from kvstage.runtime.pending import Pending
from kvstage.runtime.runtime import Runtime, Submitted
from kvstage.transfer import Transfer
from kvstage_model.language.operations import OnStream, Operation, QueryEvent, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.scheme import CALLER, Scheme
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued, describe, unrolling
from kvstage_model.ordering.races import HappensBefore
from kvstage_model.traces.matching import Names, departure

MOST_STEPS = 1000
"""Steps of the longest call that is watched: the loop over 8192 rows is the loop over 5, and would take a minute more."""


class Watch:
    """All drifts that were seen, in words, and how many operations were compared."""

    def __init__(self) -> None:
        self.drifts: list[str] = []
        self.compared = 0
        self._recorders: dict[int, RecordingDevice[Any, Any]] = {}
        self._names: WeakKeyDictionary[Runtime, dict[str, Names]] = WeakKeyDictionary()
        self._left: WeakKeyDictionary[Pending, tuple[RecordingDevice[Any, Any], int]] = WeakKeyDictionary()

    def taken(self) -> list[str]:
        """What was seen; it is forgotten. For tests that drift on purpose."""
        seen, self.drifts = self.drifts, []
        return seen

    def recording(self, device: Any) -> Any:
        """The recorder around a device, one for each; around a test's own recorder, too."""
        return self._recorders.setdefault(id(device), RecordingDevice(device))

    def submit(
        self, runtime: Runtime, original: Any, scheme: Scheme, pool: torch.Tensor, host: torch.Tensor, named: Any
    ) -> Submitted:
        """`Runtime.submit`, watched."""
        thread, recorder = get_ident(), runtime._device
        first = len(recorder.noted) + len(runtime._doubtful)  # a call first settles what one that broke off has left
        names = self._names.setdefault(runtime, {}).setdefault(scheme.name, Names())
        if scheme.fresh_events:
            names.events = {}
        names.buffers = {}
        if scheme.result is not None:
            for buffer, tensor in ((scheme.result.pool, pool), (scheme.result.host, host)):
                shaped = tensor.view(buffer.slots, buffer.rows, -1) if tensor.is_contiguous() else tensor
                names.buffers[recorder.buffer(buffer.memory, shaped).name] = buffer.name
        pending, ended = None, False
        try:
            submitted: Submitted = original(runtime, scheme, pool, host, **named)
            pending, ended = submitted.pending, True
        finally:
            noted = [each for each in recorder.noted[first:] if each.thread == thread and each.issued.phase != CALLER]
            self._compare(scheme, noted, names, pending, ended)
            if not ended:
                self._names[runtime] = {}  # the events of a call that broke off are not used again
            recorder.memories.forget()  # tests look at how long the library keeps memory; it is compared call by call
        if pending is not None:
            self._left[pending] = recorder, noted[0].issued.call if noted else 0
        return submitted

    def _compare(self, scheme: Scheme, noted: list[RecordedOperation], names: Names, pending: Pending | None, ended: bool) -> None:
        found = by_schemes_names([each.issued for each in noted])
        steps = takewhile(lambda issued: issued.phase != CALLER, unrolling([scheme]))  # the caller's come last
        wanted = list(steps if ended else islice(steps, len(found)))  # what a refused operation is made of may be unreadable
        if pending is not None:
            last = wanted.pop().operation if wanted else None
            mark = found.pop().operation if found else None
            waits = isinstance(last, SyncStream) and OWN_STREAMS[last.stream] == pending.stream
            if not (waits and isinstance(mark, RecordEvent) and OWN_STREAMS[mark.stream] == pending.stream):
                self.drifts.append(
                    f"{scheme.name}: {pending.stream} is left to the caller, its mark is {mark}, and the wait is {last}"
                )
        wrong = departure(found, wanted, names)
        if wrong is not None and (ended or wrong.index < len(found)):  # an error may end a call early
            self.drifts.append(f"{scheme.name}: operation {wrong.index}: {wrong.words}")
        self.compared += len(found)

    def arrived(self, pending: Pending | None) -> None:
        """The caller takes the rows now: the call's last work must have ended, by the axioms."""
        recorder, call = self._left.get(pending, (None, 0)) if pending is not None else (None, 0)
        if recorder is None:
            return
        number, last = max((k, each.issued) for k, each in enumerate(recorder.noted) if _moves(each.issued, call))
        waits = [
            each.issued for each in recorder.noted[number + 1 :] if _orders(each.issued.operation)
        ]  # any thread's: they are over
        used = Issued(0, CALLER, 0, SyncStream("none"))
        if not HappensBefore([last, *waits, used]).ordered(0, Moment.END, len(waits) + 1, Moment.BEGIN):
            self.drifts.append(f"the rows of [{describe(last)}] are said to have arrived, and nothing has waited for it")


def _orders(operation: Operation) -> bool:
    said_yes = isinstance(operation, QueryEvent) and operation.answer != 0
    return said_yes or isinstance(operation, RecordEvent | SyncEvent | SyncStream)


def _moves(issued: Issued, call: int) -> bool:
    moves = isinstance(issued.operation, OnStream) and not isinstance(issued.operation, RecordEvent)
    return moves and issued.call == call and issued.phase != CALLER


@contextmanager
def watching() -> Iterator[Watch]:
    """Watches every runtime that is made, and every transfer that is used, inside."""
    watch = Watch()
    made, submit, quiet, wait, query = Runtime.__init__, Runtime.submit, Runtime.quiet, Transfer.wait, Transfer.query

    @wraps(made)
    def on_recorder(runtime: Runtime, device: Any, *arguments: Any) -> None:
        made(runtime, watch.recording(device), *arguments)

    @wraps(submit)
    def watched_submit(runtime: Runtime, scheme: Scheme, pool: torch.Tensor, host: torch.Tensor, **named: Any) -> Submitted:
        recorder = runtime._device
        if scheme.steps > MOST_STEPS:
            runtime._device = recorder._device
            try:
                return submit(runtime, scheme, pool, host, **named)
            finally:
                runtime._device = recorder
        with recorder.call():
            return watch.submit(runtime, submit, scheme, pool, host, named)

    @wraps(quiet)
    def watched_quiet(runtime: Runtime) -> None:
        recorder = runtime._device
        if isinstance(recorder, RecordingDevice):
            with recorder._as_callers():  # it is for calls before this one, and none of its scheme's waits
                quiet(runtime)
        else:
            quiet(runtime)

    @wraps(wait)
    def watched_wait(transfer: Transfer[Any], timeout: float | None = None) -> None:
        wait(transfer, timeout)
        watch.arrived(transfer._pending)

    @wraps(query)
    def watched_query(transfer: Transfer[Any]) -> bool:
        answer = query(transfer)
        if answer:
            watch.arrived(transfer._pending)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runtime, "__init__", on_recorder)
        patch.setattr(Runtime, "submit", watched_submit)
        patch.setattr(Runtime, "quiet", watched_quiet)
        patch.setattr(Transfer, "wait", watched_wait)
        patch.setattr(Transfer, "query", watched_query)
        yield watch
