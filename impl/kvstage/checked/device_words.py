"""How a checked device speaks of its memory and of its calls."""

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Operation, RecordEvent, SyncEvent, SyncStream, Take, WaitEvent

from .findings import Place
from .memory import MemoryRegions


class DeviceWords:
    """The words of findings: see `findings.Words`."""

    freed = "freed"

    def __init__(self, regions: MemoryRegions) -> None:
        self._regions = regions

    def place(self, rows: Rows) -> Place | None:
        """Where bytes lie, in the memory that the device has met."""
        region = self._regions.find(rows.start, rows.count)
        return None if region is None else Place(region.memory, len(region.bytes), rows.start - region.start, region.line)

    def call(self, operation: Operation) -> str:
        """A wait or a record, as a call of the device."""
        match operation:
            case Take():
                return "device.take(...) of what the first returned"
            case SyncStream(stream):
                return f'device.synchronize("{stream}")'
            case RecordEvent(_, stream):
                return f'device.record(event, "{stream}")'
            case SyncEvent():
                return "device.wait(event)"
            case WaitEvent(stream):
                return f'device.wait_event("{stream}", event)'
            case _:
                raise AssertionError(f"no wait: {operation}")

    def kept(self, stream: str) -> str | None:
        """There is nothing else."""
        return None
