"""A simulated device that looks at what is issued on it: the device for testing a staging loop of your own.

Run the code once for each schedule, with a new device each time; pytest's argument `staging_schedule` does just that:

    def test_upload(staging_schedule):
        device = staging_schedule.device()
        pinned, pages = device.allocate(Memory.PINNED, 16), device.allocate(Memory.DEVICE, 16)
        pinned[:] = 7
        device.copy("h2d", pinned, pages)
        device.synchronize("h2d")
        assert pages.tolist() == [7] * 16
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch

from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import Copy, Event, Launch, Post
from kvstage_model.schedules.schedule import Schedule

from ..devices.device import Index
from ..devices.simulated import UNWRITTEN, SimDevice
from ..errors import DeviceError
from .allocator import DRIVER, Allocator
from .byte_runs import byte_runs
from .host_view import HostView
from .operands import gaps, index_of, refuse_copy, refuse_post, refuse_unseen, rows_of, side_by_side
from .run import CheckedRun
from .source_lines import users_line
from .trace import HOST_COPY, QUERY, RECORD, STREAM_WAIT, SYNCHRONIZE, TAKE, WAIT


class CheckedDevice(CheckedRun):
    """Runs code under one schedule, as SimDevice does, and finds what it does without a wait.

    Handles are tensors of any dtype whose uses by the host are noted, see `host_view.py`: `allocate` makes them, and
    `host_view` makes one of a tensor of yours. A stager's pools, and its `out` and `rows`, must be such tensors too. Each use
    is an action of the host, so a schedule may let streams move before it.

    `close`, and leaving the `with`, raises what was found as a StagingError; if the code has raised an error
    already, what was found becomes a note of that. Memory from `allocate` whose last tensor is gone is written by another party
    once it may be handed out again: `allocator` says by which rules, "driver" or "torch", see `allocator.py`.

    It has one host thread, the one that made it: calls and uses of its tensors by another raise HostThreadError, and so does
    the end of the run, since that may have gone unseen. Once it is closed, all work has ended: `synchronize`, `wait`, `query`
    and `close` have nothing to do, and everything else raises ClosedError.
    """

    costs = SimDevice.costs

    def __init__(self, schedule: Schedule, *, allocator: str = DRIVER, replayed: bool = False) -> None:
        """`replayed`: what is found names this schedule, under which the run is looked at, and no other."""
        super().__init__(schedule, Allocator(allocator), replayed)

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """`size` new bytes, uint8 [size], filled with UNWRITTEN."""
        self._check_open()
        tensor, region = self._regions.allocate(memory, size, UNWRITTEN, users_line(), self._freed)
        self._handed_out(self._allocator.allocated(region))
        return HostView.of(tensor, self)

    def record_stream(self, tensor: torch.Tensor, stream: str) -> None:
        """Tells the allocator that a stream uses the tensor, too: torch's `record_stream`, heard under its rules alone."""
        plain = self._bytes(tensor)
        region = self._regions.find(plain.data_ptr(), 1) if plain.numel() else None
        if region is not None:
            self._allocator.record_stream(region, stream)

    def host_view(self, tensor: torch.Tensor, memory: Memory = Memory.PAGEABLE) -> torch.Tensor:
        """The same memory as a tensor whose uses are noted. Use that one alone. Raises DeviceError for tensors of a device."""
        self._check_open()
        if isinstance(tensor, HostView):
            return tensor
        if tensor.device.type != "cpu":
            raise DeviceError(f"CheckedDevice copies CPU tensors, and this one is on {tensor.device}: simulate with CPU tensors")
        self._regions.meet(memory, tensor, users_line())
        return HostView.of(tensor, self)

    def view(self, memory: Memory, tensor: torch.Tensor) -> torch.Tensor:
        """The handle that a tensor of `allocate` or `host_view` is already. Raises DeviceError for others: see `host_view`."""
        self._check_open()
        refuse_unseen(tensor, self)
        return tensor

    def copy(self, stream: str, source: torch.Tensor, target: torch.Tensor) -> None:
        """Issues a copy. Rows may have gaps between them, as those of one head of a cache have: both sides then have one shape.

        Raises LayoutError if the two differ in bytes, or in shape if one has gaps; AliasError if they overlap.
        """
        origin, place = self._bytes(source), self._bytes(target)
        refuse_copy(origin, place)
        self._uses(stream, origin, place)
        what = f"copy {self._sim.copies}"
        if gaps(origin, place):
            operation: Copy | Launch = Launch(stream, byte_runs(origin), byte_runs(place))
        else:
            origin, place = origin.view(-1), place.view(-1)
            operation = Copy(stream, side_by_side(origin), side_by_side(place))
        self._sim.copy(stream, self._regions.mirror(origin), self._regions.mirror(place))
        self._issued(operation, what)

    def post(self, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]) -> object:
        """Hands a transfer to an agent outside all streams, such as a network card or a disk. Returns what `take` takes.

        At any time from now on it reads the tensors of `reads` and writes their bytes, one after the other, to those of `writes`.
        No stream orders it: what it reads must have ended before the call, and its end is known by `take` alone. Raises
        LayoutError if both have tensors, and not the same number of bytes.
        """
        origins, places = [self._bytes(each) for each in reads], [self._bytes(each) for each in writes]
        refuse_post(origins, places)
        event = Event("post", self._sim.posts)
        what = f"post {self._sim.posts}"
        self._sim.post([self._regions.mirror(each) for each in origins], [self._regions.mirror(each) for each in places])
        rows = (tuple(run for each in ends for run in byte_runs(each)) for ends in (origins, places))
        self._issued(Post(event, *rows), what)
        return event

    def take(self, posted: object) -> None:
        """Blocks until a transfer of `post` has ended: what a card reports by its completion."""
        if self._over():
            return
        if not isinstance(posted, Event):
            raise DeviceError(f"take of a {type(posted).__name__}: give what post returned")
        self._accesses.take(posted, users_line())
        self._sim.take(posted.index, self._next(TAKE))
        self._looks.clear()

    def gather(self, stream: str, source: torch.Tensor, index: Index, target: torch.Tensor) -> None:
        """Issues a kernel: row i of `target` [n, width] is row `index[i]` of the pool `source` [slots, rows, width].

        The index is read at once. Raises LayoutError if shapes don't fit or a row is not in the pool.
        """
        pool, packed, index = self._bytes(source), self._bytes(target), index_of(index)
        self._uses(stream, pool, packed)
        operation = Launch(stream, rows_of(pool, index, packed), byte_runs(packed))
        what = f"gather {self._sim.launches}"
        self._sim.gather(stream, self._regions.mirror(pool), index, self._regions.mirror(packed))
        self._issued(operation, what)

    def scatter(self, stream: str, source: torch.Tensor, target: torch.Tensor, index: Index) -> None:
        """Issues a kernel: row i of `source` [n, width] goes to row `index[i]` of the pool `target` [slots, rows, width].

        The index is read at once. Raises LayoutError if shapes don't fit or a row is not in the pool, or there twice.
        """
        pool, packed, index = self._bytes(target), self._bytes(source), index_of(index)
        self._uses(stream, pool, packed)
        operation = Launch(stream, byte_runs(packed), rows_of(pool, index, packed, once=True))
        what = f"scatter {self._sim.launches}"
        self._sim.scatter(stream, self._regions.mirror(packed), self._regions.mirror(pool), index)
        self._issued(operation, what)

    def host_copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copies when the schedule lets the host go on. Raises what `copy` does."""
        origin, place = self._bytes(source), self._bytes(target)
        refuse_copy(origin, place, runs=True)
        origin, place = origin.view(-1), place.view(-1)
        moved, there = self._regions.mirror(origin), self._regions.mirror(place)
        self._sim.host(lambda: np.copyto(there, moved), self._next(HOST_COPY))
        self._accesses.host_copy(side_by_side(origin), side_by_side(place), users_line())
        self._looks.clear()

    def synchronize(self, stream: str) -> None:
        """Blocks until the stream is done."""
        if self._over():
            return
        self._accesses.synchronize(stream, users_line())
        self._sim.synchronize(stream, self._next(SYNCHRONIZE))
        self._looks.clear()

    def event(self) -> object:
        """A new event."""
        self._check_open()
        return self._sim.event()

    def record(self, event: Hashable, stream: str) -> None:
        """Marks what was issued on a stream so far."""
        self._check_open()
        self._sim.record(event, stream, self._next(RECORD))
        self._accesses.record(event, stream, users_line())

    def wait_event(self, stream: str, event: Hashable) -> None:
        """A stream goes on only after what the event's last record marks now."""
        self._check_open()
        self._sim.wait_event(stream, event, self._next(STREAM_WAIT))
        self._accesses.wait_event(stream, event, users_line())

    def wait(self, event: Hashable) -> None:
        """Blocks until what the event's last record marks has ended."""
        if self._over():
            return
        self._accesses.wait(event, users_line())
        self._sim.synchronize_event(event, self._next(WAIT))
        self._looks.clear()

    def query(self, event: Hashable) -> bool:
        """Whether what the event's last record marks has ended. Polling loops end: see SimDevice.query."""
        if self._over():
            return True
        before = self._sim.moved
        answer = self._sim.query(event)
        again = self._accesses.query(event, answer, users_line())
        self._log(f"{QUERY} {self._numbers[QUERY] - 1}" if again else self._next(QUERY))
        if self._sim.moved > before:
            self._looks.clear()
        self._look("asks the same event", users_line(), event)
        return answer
