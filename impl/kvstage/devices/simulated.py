"""The simulator as a device: the order in which copies begin and end is what a schedule says. For tests.

Run the code once for each schedule:

    for schedule, read in delays(lambda schedule: my_read(SimDevice(schedule))):
        assert read == expected, schedule

It judges nothing: for code of your own take `CheckedDevice`, which stands on this one.
"""

from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.language.buffers import Memory
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.simulation.machine import Machine

from ..costs import PCIE_5
from ..errors import ClosedError, DeviceError
from .device import Index
from .left_behind import left_behind
from .lock import lock_of
from .named_streams import OWN, NamedStreams, PlainEvent

Bytes: TypeAlias = NDArray[np.uint8]

UNWRITTEN = 0xA5
"""What new memory is filled with, so that reading it before anything arrived gives the same wrong bytes in every run."""


class SimDevice(NamedStreams, Machine):
    """A simulated machine whose memory is CPU tensors: a copy moves half of its bytes when it begins, half when it ends.

    `schedule` is one of `kvstage_model.schedules`; use a new device for each run. Leaving the `with`, or `close`, lets
    everything that is still under way end. `copies`, `launches` (kernels) and `waits` count what was asked for.
    """

    costs = PCIE_5
    """So that `scheme="auto"` measures nothing under a schedule, and picks what it would pick on an accelerator."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.copies = 0
        self.launches = 0
        self.waits = 0
        self.posts = 0
        self.closed = False

    def view(self, memory: Memory, tensor: torch.Tensor) -> Bytes:
        """A numpy view of a CPU tensor, whatever the kind of memory. Raises DeviceError for other tensors."""
        if tensor.device.type != "cpu":
            raise DeviceError(f"SimDevice copies CPU tensors, and this one is on {tensor.device}: simulate with CPU tensors")
        array: Bytes = tensor.numpy()
        return array

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """Host memory, filled with UNWRITTEN."""
        self._check_open()
        return torch.full((size,), UNWRITTEN, dtype=torch.uint8, device="cpu")

    def copy(self, stream: str, source: Bytes, target: Bytes) -> None:
        """Issues a copy of two halves."""
        self._check_open()
        self.issue(stream, _halves(source, target), f"copy {self.copies}")
        self.copies += 1

    def gather(self, stream: str, source: Bytes, index: Index, target: Bytes) -> None:
        """Issues a kernel that moves the first half of each row when it begins, and the second when it ends."""
        self._check_open()
        slots, rows = np.divmod(index, source.shape[1])

        def move(half: int) -> None:
            part = _half(half, target.shape[1])
            target[:, part] = source[slots, rows, part]

        self.issue(stream, move, f"gather {self.launches}")
        self.launches += 1

    def scatter(self, stream: str, source: Bytes, target: Bytes, index: Index) -> None:
        """Issues a kernel that moves the first half of each row when it begins, and the second when it ends."""
        self._check_open()
        slots, rows = np.divmod(index, target.shape[1])

        def move(half: int) -> None:
            part = _half(half, source.shape[1])
            target[slots, rows, part] = source[:, part]

        self.issue(stream, move, f"scatter {self.launches}")
        self.launches += 1

    def post(self, sources: Sequence[Bytes], targets: Sequence[Bytes]) -> None:
        """Hands the transfer number `posts` to an agent of its own, outside all streams: it moves bytes as a copy does.

        Without targets they go nowhere, and without sources nothing but zeros comes.
        """
        self._check_open()
        arrived = np.zeros(sum(target.size for target in targets) or sum(source.size for source in sources), np.uint8)

        def move(half: int) -> None:
            part = _half(half, len(arrived))
            if sources:
                arrived[part] = np.concatenate([source.reshape(-1) for source in sources])[part]
            start = 0
            for target in targets:
                mine = arrived[start : start + target.size].reshape(target.shape)
                first, last = max(part.start or 0, start) - start, min(part.stop or len(arrived), start + target.size) - start
                here = np.zeros(target.size, bool)
                here[max(first, 0) : max(last, 0)] = True
                np.copyto(target, mine, where=here.reshape(target.shape))
                start += target.size

        self.issue(f"{OWN}post {self.posts}", move, f"post {self.posts}")
        self.posts += 1

    def take(self, number: int, label: object = "take") -> None:
        """Blocks until that transfer has ended."""
        self._check_open()
        self.waits += 1
        Machine.synchronize(self, f"{OWN}post {number}", label)

    def host_copy(self, source: Bytes, target: Bytes) -> None:
        """Copies when the schedule lets the host go on."""
        self._check_open()
        self.host(lambda: np.copyto(target, source), "host copy")

    def synchronize(self, stream: str, label: object = "synchronize") -> None:
        """Blocks until the stream is done; the schedule says what else moves meanwhile."""
        self._check_open()
        self.waits += 1
        super().synchronize(stream, label)

    def event(self) -> object:
        """A new event."""
        return PlainEvent()

    def record(self, event: Hashable, stream: str, label: object = "record") -> None:
        """Marks what was issued on a stream so far."""
        self._check_open()
        super().record(event, stream, label)

    def wait_event(self, stream: str, event: Hashable, label: object = "stream wait") -> None:
        """A stream goes on only after what the event's last record marks now."""
        self._check_open()
        super().wait_event(stream, event, label)

    def wait(self, event: Hashable) -> None:
        """Blocks until what the event's last record marks has ended; the schedule says what else moves meanwhile."""
        self.waits += 1
        self.synchronize_event(event, "wait")

    def close(self) -> None:
        """Lets all streams finish."""
        with lock_of(self):
            self.closed = True
            self.drain()
        left_behind(self).clear()

    def __enter__(self) -> "SimDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("this SimDevice is closed: make a new one for each run")


def _halves(source: Bytes, target: Bytes) -> Callable[[int], None]:
    """Moves the first or the second half of the bytes. One byte moves at the end.

    If the rows of one side have gaps, it is half of each row.
    """
    source, target = np.asarray(source), np.asarray(target)  # tensors share their memory
    if source.flags.c_contiguous and target.flags.c_contiguous:
        source, target = source.reshape(-1), target.reshape(-1)  # views: the bytes of a run lie side by side

    def move(half: int) -> None:
        part = _half(half, target.shape[-1])
        target[..., part] = source[..., part]

    return move


def _half(half: int, length: int) -> slice:
    middle = length // 2
    return slice(middle, None) if half else slice(middle)
