"""One run on a checked device: what was issued and happened in it, and the verdict at its end."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from threading import get_ident
from types import TracebackType
from typing import Self

import torch

from kvstage_model.language.buffers import Memory, Rows
from kvstage_model.language.operations import Operation, Post, reads, stream_of, writes
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.schedule import Schedule

from ..devices.named_streams import NamedStreams
from ..devices.simulated import SimDevice
from ..errors import ClosedError
from .accesses import Accesses, CheckedOperation
from .allocator import Allocator, Block
from .byte_runs import byte_runs
from .device_words import DeviceWords
from .findings import StagingError, finding, non_blocking, other_thread, replay_of, spinning
from .host_view import plain
from .memory import FREED, MemoryRegion, MemoryRegions
from .operands import as_bytes, refuse_unseen
from .source_lines import users_line
from .trace import FREE, trace_of

LOOKS = 1000
"""How often the host may look at the same bytes, or ask the same event, on one line while nothing else happens: then it would
never end."""


class CheckedRun(NamedStreams):
    """What `CheckedDevice` keeps of a run, and how it is judged."""

    def __init__(self, schedule: Schedule, allocator: Allocator, replayed: bool) -> None:
        self._sim = SimDevice(schedule)
        self._schedule = schedule
        self._allocator = allocator
        self._replayed = replayed
        self._regions = MemoryRegions()
        self._accesses = Accesses()
        self._host_accesses = 0
        self._found: StagingError | None = None
        self._looks: Counter[Hashable] = Counter()
        self._numbers: Counter[str] = Counter()
        self._thread = get_ident()
        self._refused: StagingError | None = None

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

    def trace(self) -> Trace:
        """What was issued so far and what happened, for `as_json` and `as_svg` of `kvstage_model.traces`. A row is a byte.

        Each piece of memory is a buffer: "pinned 0", "device 1". What the host does on one line is one access, at its last moment.
        """
        return trace_of(self._accesses.noted, self._sim.log, self._regions)

    def finish(self) -> StagingError | None:
        """Lets all streams finish, and says what was found. Called again it says the same."""
        if not self.closed:
            self._sim.close()
            program = self._accesses.program(self._place)
            self._found = self._refused or finding(program, DeviceWords(self._regions), self._schedule, replayed=self._replayed)
        return self._found

    def close(self) -> None:
        """Lets all streams finish, and raises what was found. Called again it does nothing."""
        __tracebackhide__ = True
        found = None if self.closed else self.finish()
        if found is not None:
            raise found

    def __enter__(self) -> Self:
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
        self._look("reads the same bytes", line, tuple((rows.start, rows.count) for rows in reads))

    def asynchronous(self, what: str, tensors: Sequence[torch.Tensor]) -> None:
        """A function of torch's is called with `non_blocking=True`. Raises NonBlockingError but for a copy inside host memory."""
        met = [self._regions.find(each.data_ptr(), each.element_size()) for each in tensors if each.numel()]
        if what == "copy_" and not any(region is not None and region.memory is Memory.DEVICE for region in met):
            return
        self._refused = self._refused or non_blocking(what, users_line(), replay_of(self._schedule))
        raise self._refused

    def _look(self, does: str, line: object, what: Hashable) -> None:
        """The host looks at something that only others change. Raises SpinningError after LOOKS times in which nothing did."""
        look = (does, line, what)
        self._looks[look] += 1
        if self._looks[look] > LOOKS:
            raise spinning(does, users_line(), self._under_way(), replay_of(self._schedule))

    def _under_way(self) -> list[CheckedOperation]:
        ended = {label for label, moment in self._sim.log if moment is Moment.END}
        return [each for each in self._accesses.noted if each.number is not None and each.what not in ended]

    def _freed(self, region: MemoryRegion) -> bool:
        """Some memory is not held any more; whether it may be another party's at once."""
        line = users_line()
        if line is None or self.closed:
            return True
        if self._allocator.keeps(region, line, self._accesses.noted):
            return False
        self._accesses.freed(region.rows, line)
        self._log(self._next(FREE))
        return True

    def _handed_out(self, blocks: Sequence[Block], stream: str | None = None) -> None:
        """The allocator gives memory that was dropped to another party, which writes there: on a stream, or the host."""
        for block in blocks:
            overwrites = _overwriting(block)
            if stream is None:
                overwrites(0)
                overwrites(1)
                self._accesses.freed(block.region.rows, block.line, block.spared)
                self._log(self._next(FREE))
            else:
                what = self._next(FREE)
                self._sim.issue(stream, overwrites, what)
                self._accesses.freed_on(stream, block.region.rows, what, block.line, block.spared)

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

    def _over(self) -> bool:
        """Whether all work has ended with the run. Raises HostThreadError if it has not."""
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
            self._refused = self._refused or other_thread(users_line(), replay_of(self._schedule))
            raise self._refused

    def _bytes(self, tensor: torch.Tensor) -> torch.Tensor:
        """The plain uint8 tensor on a handle's memory. If there is not a byte, nothing can go unseen."""
        self._check_open()
        refuse_unseen(tensor, self)
        return as_bytes(plain(tensor))

    def _uses(self, stream: str, *tensors: torch.Tensor) -> None:
        """Work on a stream is about to be issued that uses these: the allocator may hand out memory for it first."""
        found = (self._regions.find(each.data_ptr(), 1) for each in tensors if each.numel())
        self._handed_out(self._allocator.used(stream, [region for region in found if region is not None]), stream)

    def _issued(self, operation: Operation, what: str) -> None:
        """Notes work that happens later: what a stream does, or a card."""
        if stream_of(operation) is not None and not isinstance(operation, Post):
            touched = [self._regions.find(rows.start, rows.count) for rows in _runs(operation)]
            self._allocator.told(operation, self._accesses.asynchronous, [region for region in touched if region is not None])
        self._accesses.later(operation, what, users_line())
        self._looks.clear()


def _runs(operation: Operation) -> list[Rows]:
    return [access for access in (*reads(operation), *writes(operation)) if isinstance(access, Rows) and access.count]


def _overwriting(block: Block) -> Callable[[int], None]:
    """Fills memory with FREED, one half after the other; if the allocator waits for work there first, it is left alone."""

    def move(half: int) -> None:
        middle = len(block.region.bytes) // 2
        if not block.spared:
            block.region.bytes[slice(middle, None) if half else slice(middle)] = FREED

    return move
