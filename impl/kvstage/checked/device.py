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

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from threading import get_ident
from types import TracebackType

import numpy as np
import torch

from kvstage_model.language.buffers import Memory, Rows
from kvstage_model.language.operations import Copy, Launch
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.schedule import Schedule

from ..devices.device import Index
from ..devices.named_streams import NamedStreams
from ..devices.simulated import UNWRITTEN, SimDevice
from ..errors import ClosedError, DeviceError
from .accesses import Accesses, CheckedOperation
from .byte_runs import byte_runs
from .findings import HostThreadError, StagingError, finding, other_thread, replay_of, spinning
from .host_view import HostView, plain
from .memory import MemoryRegion, MemoryRegions
from .operands import as_bytes, index_of, refuse_copy, refuse_unseen, rows_of, side_by_side
from .source_lines import users_line
from .trace import FREE, HOST_COPY, QUERY, RECORD, STREAM_WAIT, SYNCHRONIZE, WAIT, trace_of

LOOKS = 1000
"""How often the host may read the same bytes on the same line while nothing else happens: then it would never end."""


class CheckedDevice(NamedStreams):
    """Runs code under one schedule, as SimDevice does, and finds what it does without a wait.

    Handles are tensors of any dtype whose uses by the host are noted, see `host_view.py`: `allocate` makes them, and
    `host_view` makes one of a tensor of yours. A stager's pools, and its `out` and `rows`, must be such tensors too. Each use
    is an action of the host, so a schedule may let streams move before it.

    `close`, and leaving the `with`, raises what was found as a StagingError; where the code has raised an error
    already, what was found becomes a note of that. Memory from `allocate` whose last tensor is gone counts as written
    by somebody else from then on.

    It has one host thread, the one that made it: calls and uses of its tensors by another raise HostThreadError, and so does
    the end of the run, since nobody may have seen that. Once it is closed, all work has ended: `synchronize`, `wait`, `query`
    and `close` have nothing to do, and everything else raises ClosedError.
    """

    costs = SimDevice.costs

    def __init__(self, schedule: Schedule) -> None:
        self._sim = SimDevice(schedule)
        self._schedule = schedule
        self._regions = MemoryRegions()
        self._accesses = Accesses()
        self._host_accesses = 0
        self._found: StagingError | None = None
        self._looks: Counter[Hashable] = Counter()
        self._numbers: Counter[str] = Counter()
        self._thread = get_ident()
        self._second_thread: HostThreadError | None = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._sim.closed

    @property
    def issued(self) -> int:
        """How many copies and kernels were issued."""
        return self._accesses.asynchronous

    @property
    def log(self) -> list[tuple[object, Moment]]:
        """What began and ended so far, in the order of happening."""
        return self._sim.log

    def allocate(self, memory: Memory, size: int) -> torch.Tensor:
        """`size` new bytes, uint8 [size], filled with UNWRITTEN."""
        self._check_open()
        return HostView.of(self._regions.allocate(memory, size, UNWRITTEN, users_line(), self._freed), self)

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
        """Issues a copy. Raises LayoutError where the two differ in bytes or have gaps, AliasError where they overlap."""
        origin, place = self._ends(source, target)
        operation, what = Copy(stream, side_by_side(origin), side_by_side(place)), f"copy {self._sim.copies}"
        self._sim.copy(stream, self._regions.mirror(origin), self._regions.mirror(place))
        self._issued(operation, what)

    def gather(self, stream: str, source: torch.Tensor, index: Index, target: torch.Tensor) -> None:
        """Issues a kernel: row i of `target` [n, width] is row `index[i]` of the pool `source` [slots, rows, width].

        The index is read at once. Raises LayoutError where shapes don't fit or a row is not in the pool.
        """
        pool, packed, index = self._bytes(source), self._bytes(target), index_of(index)
        operation = Launch(stream, rows_of(pool, index, packed), byte_runs(packed))
        what = f"gather {self._sim.launches}"
        self._sim.gather(stream, self._regions.mirror(pool), index, self._regions.mirror(packed))
        self._issued(operation, what)

    def scatter(self, stream: str, source: torch.Tensor, target: torch.Tensor, index: Index) -> None:
        """Issues a kernel: row i of `source` [n, width] goes to row `index[i]` of the pool `target` [slots, rows, width].

        The index is read at once. Raises LayoutError where shapes don't fit or a row is not in the pool, or there twice.
        """
        pool, packed, index = self._bytes(target), self._bytes(source), index_of(index)
        operation = Launch(stream, byte_runs(packed), rows_of(pool, index, packed, once=True))
        what = f"scatter {self._sim.launches}"
        self._sim.scatter(stream, self._regions.mirror(packed), self._regions.mirror(pool), index)
        self._issued(operation, what)

    def host_copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copies when the schedule lets the host go on. Raises what `copy` does."""
        origin, place = self._ends(source, target)
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
        answer = self._sim.query(event)
        again = self._accesses.query(event, answer, users_line())
        self._log(f"{QUERY} {self._numbers[QUERY] - 1}" if again else self._next(QUERY))
        return answer

    def trace(self) -> Trace:
        """What was issued so far and what happened, for `kvstage_model.trace_json` and `trace_svg`. A row is a byte.

        Each piece of memory is a buffer: "pinned 0", "device 1". What the host does on one line is one access, at its last moment.
        """
        return trace_of(self._accesses.noted, self._sim.log, self._regions)

    def finish(self) -> StagingError | None:
        """Lets all streams finish, and says what was found. Called again it says the same."""
        if not self.closed:
            self._sim.close()
            self._found = self._second_thread or finding(self._accesses.program(self._place), self._regions)
        return self._found

    def close(self) -> None:
        """Lets all streams finish, and raises what was found. Called again it does nothing."""
        __tracebackhide__ = True
        found = None if self.closed else self.finish()
        if found is not None:
            raise found

    def __enter__(self) -> "CheckedDevice":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        __tracebackhide__ = True
        if error is None:
            self.close()
        elif not self.closed and (found := self.finish()) is not None:
            error.add_note(str(found))

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether uses of a tensor's memory are noted."""
        return not self.closed and self._regions.knows(tensor)

    def touch(self, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor], act: Callable[[], None]) -> None:
        """The host uses tensors, which is one action of its own. Raises SpinningError after LOOKS reads that change nothing."""
        reads, writes = (
            tuple(rows for tensor in used if self.knows(tensor) for rows in byte_runs(tensor)) for used in (read, written)
        )
        if not reads and not writes:
            act()
            return
        self._check_thread()
        line, before, what = users_line(), self._sim.moved, f"host access {self._host_accesses}"
        self._host_accesses += 1
        self._sim.host(act, what)
        self._accesses.host(reads, writes, what, line)
        if writes or self._sim.moved > before:
            self._looks.clear()
            return
        look = (line, tuple((rows.start, rows.count) for rows in reads))
        self._looks[look] += 1
        if self._looks[look] > LOOKS:
            raise spinning(line, self._under_way(), replay_of(self._schedule))

    def _under_way(self) -> list[CheckedOperation]:
        ended = {label for label, moment in self._sim.log if moment is Moment.END}
        return [each for each in self._accesses.noted if each.number is not None and each.what not in ended]

    def _issued(self, operation: Copy | Launch, what: str) -> None:
        self._accesses.stream(operation, what, users_line())
        self._looks.clear()

    def _freed(self, region: MemoryRegion) -> None:
        line = users_line()
        if line is not None and not self.closed:
            self._accesses.freed(region.rows, line)
            self._log(self._next(FREE))

    def _next(self, kind: str) -> str:
        """The name in the log of the host's next action of a kind."""
        self._numbers[kind] += 1
        return f"{kind} {self._numbers[kind] - 1}"

    def _log(self, name: str) -> None:
        """Something of the host's that the simulated device does not see, at this moment."""
        self._sim.log += [(name, Moment.BEGIN), (name, Moment.END)]

    def _place(self, rows: Rows) -> Hashable:
        region = self._regions.find(rows.start, rows.count)
        return rows.start if region is None else (region.number, rows.start - region.start)

    def _ends(self, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        origin, place = self._bytes(source), self._bytes(target)
        refuse_copy(origin, place)
        return origin.view(-1), place.view(-1)

    def _bytes(self, tensor: torch.Tensor) -> torch.Tensor:
        """The plain uint8 tensor on a handle's memory. Where there is not a byte, nothing can go unseen."""
        self._check_open()
        refuse_unseen(tensor, self)
        return as_bytes(plain(tensor))

    def _over(self) -> bool:
        """Whether all work has ended with the run. Raises HostThreadError where it has not."""
        if not self.closed:
            self._check_thread()
        return self.closed

    def _check_open(self) -> None:
        if self._over():
            raise ClosedError(
                "this CheckedDevice is closed, its run is over and was judged: work is issued before the test returns, and on a "
                "new device in each run (a fixture may still synchronize, wait, query and close)"
            )

    def _check_thread(self) -> None:
        if get_ident() != self._thread:
            self._second_thread = self._second_thread or other_thread(users_line(), replay_of(self._schedule))
            raise self._second_thread
