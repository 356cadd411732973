"""How findings speak of torch.cuda: where memory was made, and waits as a user writes them."""

from collections.abc import Callable
from dataclasses import replace

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Operation, RecordEvent, SyncEvent, SyncStream, WaitEvent

from ..checked.findings import Place


class CudaWords:
    """The words of findings: see `checked.findings.Words`."""

    freed = "freed at or after"

    def __init__(self, find: Callable[[str], Place | None]) -> None:
        self._find = find

    def place(self, rows: Rows) -> Place | None:
        """Where bytes lie, in the block that they are of."""
        block = self._find(rows.buffer.name)
        return None if block is None else replace(block, start=rows.start)

    def call(self, operation: Operation) -> str:
        """A wait or a record, as a call of torch's."""
        match operation:
            case SyncStream(stream):
                return f"{stream_in_words(stream)}.synchronize()"
            case RecordEvent(_, stream):
                return f"event.record({stream_in_words(stream)})"
            case SyncEvent():
                return "event.synchronize()"
            case WaitEvent(stream):
                return f"{stream_in_words(stream)}.wait_event(event)"
            case _:
                raise AssertionError(f"no wait: {operation}")

    def kept(self, stream: str) -> str | None:
        """Torch's allocator can be told."""
        return f"tensor.record_stream({stream_in_words(stream)})"


def stream_in_words(stream: str) -> str:
    """A stream's name in code."""
    return f"stream_{stream}" if stream.isdigit() else "default_stream" if stream == "default" else "allocation_stream"
