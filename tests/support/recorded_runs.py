"""Schemes as the library runs them, recorded: what its runtime really asked of a device, and what its caller then did.

The device is simulated and does everything at once, so every byte is right; only the recorded program tells.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from kvstage import SchemeError, SimDevice
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage.recorder.device import RecordingDevice
from kvstage.runtime.memory_budget import Buffers
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.buffers import Addressed
from kvstage_model.language.operations import Gather, Operation, Scatter
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import Issued, plain
from kvstage_model.schedules.schedule import IssueOrder


class _AtOnce:
    """Where rows lie, for a whole array of them, as the runtime asks, or for one; an instance's own table knows only that."""

    def __init__(self, rows: Addressed) -> None:
        self._rows = rows

    def address(self, positions: Any) -> Any:
        """Blocks and rows."""
        if isinstance(positions, int):  # from the watch, which unrolls the scheme beside the run
            return self._rows.address(positions)
        found = [self._rows.address(int(position)) for position in positions]
        return np.array([block for block, _ in found]), np.array([row for _, row in found])


def _readable(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        match operation:
            case Gather(source=paged):
                yield replace(operation, source=replace(paged, rows=_AtOnce(paged.rows)))
            case Scatter(target=paged):
                yield replace(operation, target=replace(paged, rows=_AtOnce(paged.rows)))
            case _:
                yield operation


def _on_own_stream(operation: Operation) -> Operation:
    """A kernel of the caller's, on the stream that the library has for the one that the scheme names."""
    stream = getattr(operation, "stream", None)
    return operation if stream is None else replace(operation, stream=OWN_STREAMS[stream])  # type: ignore[arg-type]


def recorded(calls: Sequence[Scheme]) -> tuple[Issued, ...] | None:
    """The program of concrete calls, one after the other; None if the library runs no such scheme, or no row moves."""
    tensors: dict[str, torch.Tensor] = {}
    with RecordingDevice(SimDevice(IssueOrder())) as device:
        runtime = Runtime(device, Buffers(device, None))
        for scheme in calls:
            result = scheme.result
            if result is None or not result.length:
                return None
            for buffer in (result.pool, result.host):
                if buffer.name not in tensors:
                    tensors[buffer.name] = torch.zeros(buffer.slots, buffer.rows, 1, dtype=torch.uint8)
                    device.name(tensors[buffer.name], buffer.name)
            with device.call():
                try:
                    submitted = runtime.submit(
                        scheme.changed(_readable, scheme.name), tensors[result.pool.name], tensors[result.host.name]
                    )
                except SchemeError:
                    return None
                if submitted.pending is not None:
                    submitted.pending.wait()
            for position in range(result.length):
                for operation in result.caller(position):
                    device.note(plain(_on_own_stream(operation)))
        return device.program
