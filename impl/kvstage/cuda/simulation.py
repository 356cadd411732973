"""One run: the host, the streams of the device, the schedule that says who goes on, and what was issued.

The machine is the model's, the accesses and findings are those of `CheckedDevice`: operations of torch become a program over
bytes.
"""

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Any

import torch

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Launch
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.schedules.schedule import Hold, IssueOrder, Schedule
from kvstage_model.simulation.machine import Machine

from ..checked.accesses import Accesses, Program
from ..checked.findings import Place, StagingError, error_of
from ..checked.merged_findings import Merged, merged
from ..checked.source_lines import Line, users_line
from . import boot, generators
from .failures import raising_once
from .habits import CopyEngine, habits_of
from .looks import Looks
from .memory import FREED, Allocator, Block
from .words import CudaWords

DEFAULT = "default"
"""The stream that work goes to where no other is chosen."""

Touched = tuple[tuple[Rows, ...], tuple[Rows, ...]]
"""What work reads, and what it writes."""

allocator = Allocator()
"""All memory of the process: tensors outlive runs."""

_events = count()


class Simulation:
    """One run of code on the simulated device, under one schedule. `findings` is what was found, once it has ended."""

    def __init__(self, schedule: Schedule, counts_on: Iterable[str] = ()) -> None:
        self.schedule = schedule
        self.counts_on = habits_of(counts_on)
        self._copies = CopyEngine(self)
        self.machine = Machine(schedule)
        self.accesses = Accesses()
        self._looks = Looks(self.machine, schedule)
        self.lock = threading.RLock()
        self.findings: tuple[StagingError, ...] = ()
        self.ended = False
        self.sync_debug_mode = 0
        self.capture: Any = None
        self.backward_line: Line | None = None
        self.in_issue_order = isinstance(schedule, IssueOrder)
        self._held = schedule.index if isinstance(schedule, Hold) else None
        self._busy: set[str] = set()
        self._made: dict[str, Place] = {}
        self._last_line: Line | None = None
        self._thread = threading.local()

    def line(self) -> Line | None:
        """The user's line that has led here; in autograd's own threads, that of the backward pass."""
        return users_line() or self.backward_line

    # which stream is current
    @property
    def stream(self) -> str:
        """The current stream of this thread; in a backward pass that of the forward operation, see `backward.py`."""
        chosen: str | None = getattr(self._thread, "stream", None)
        return chosen or self.backward_stream() or DEFAULT

    @property
    def chosen(self) -> str | None:
        """What this thread has set as its current stream, if anything."""
        return getattr(self._thread, "stream", None)

    @chosen.setter
    def chosen(self, stream: str | None) -> None:
        self.note_forward()
        self._thread.stream = stream

    def backward_stream(self) -> str | None:
        """Both are replaced by `backward.Backward`."""
        return None

    def note_forward(self) -> None:
        """See there."""

    # memory
    def allocate(
        self, shape: Iterable[int], stride: Iterable[int], dtype: torch.dtype, *, pinned: bool = False, memory: Any = None
    ) -> torch.Tensor:
        """A new tensor on the device, for the current stream, or in pinned memory."""
        stream = None if pinned else self.stream
        if stream is not None:
            self.hand_out(stream)
        tensor, block = allocator.tensor(shape, stride, dtype, self.line(), stream, memory)
        self._made[block.buffer.name] = Place(block.buffer.memory, block.size, 0, block.line)
        if self.capture is not None:
            self.capture.keep(block)
        return tensor

    def hand_out(self, stream: str) -> None:
        """What was freed on a stream may belong to its next allocation, whose owner may write there."""
        allocator.collect()
        if "memory-is-not-reused" in self.counts_on:
            allocator.waiting.pop(stream, None)
        for block in allocator.waiting.pop(stream, ()):
            line = self.line()
            others = block.recorded - {stream}
            owner = stream
            if others:  # handed out only after those have got as far as they were when it was freed
                owner = f"allocator of stream {stream}, {next(_events)}"
                for each in (stream, *sorted(others)):
                    event = next(_events)
                    self.accesses.record(event, each, line)
                    self.accesses.wait_event(owner, event, line)
            self.accesses.handed_out(owner, block.rows, "an allocation", block.freed or line)
            if not others and not self.in_issue_order:
                self.machine.mark(stream, lambda block=block: block.bytes.fill_(FREED), "memory handed out")  # type: ignore[misc]

    def freed(self, block: Block) -> None:
        """The last tensor on a block is gone. Called when that is noticed, at the next operation."""
        if block.stream is not None and block.size and not self.ended:
            block.freed = self._last_line
            allocator.waiting.setdefault(block.stream, []).append(block)

    # work
    def eager(self) -> bool:
        """Whether work that is issued now would be done before the host acts again, so that it may be done at once."""
        if self._held is not None:
            return self.accesses.asynchronous != self._held and self.machine.idle
        return self.in_issue_order and self.machine.idle

    def launch(
        self,
        what: str,
        touched: Touched,
        move: Callable[[int], None],
        *,
        exactly: Callable[[], Touched] | None = None,
        stream: str | None = None,
    ) -> None:
        """Work on the current stream. `move(0)` is called when it begins, `move(1)` when it ends.

        `exactly` says what it touches once it has begun, if that depends on the bytes that it is given.
        """
        stream = stream or self.stream
        if self.capture is not None and self.capture.wants(stream):
            self.capture.add(what, touched, move, exactly)
            return
        if "one-copy-engine" in self.counts_on:
            self._copies.order(what, stream)
        line = self.line()
        name = f"{what} {self.accesses.asynchronous}"
        place: list[int] = []

        @raising_once
        def act(half: int) -> None:
            if half == 0 and exactly is not None:
                self.accesses.touched(place[0], Launch(stream, *exactly()))
            move(half)

        self.machine.issue(stream, lambda half: self.run(act, half), name)
        place.append(self.accesses.later(Launch(stream, *touched), name, line))
        self._busy.add(stream)
        self._last_line = line

    def at_once(self, act: Callable[[], Any]) -> Any:
        """What the device would do before the host acts again, done now."""
        with boot.BelowModes():
            return act()

    def draw(self, generator: Any) -> int:
        """A seed for one operator, drawn by the host when it is issued."""
        return generators.draw(generator)

    def resize(self, storage: torch.UntypedStorage, size: int) -> None:
        """`storage.resize_`: what it had is freed. Raises RuntimeError for sizes between nothing and what it was made with."""
        if size != storage.nbytes():
            self.hand_out(self.stream)
            block = allocator.resized(storage, size, self.line(), self.stream)
            self._made[block.buffer.name] = Place(block.buffer.memory, block.size, 0, block.line)

    def run(self, act: Callable[[int], None], half: int) -> None:
        """Runs a piece of work as the device: no mode sees it, and nothing is differentiated."""
        with boot.BelowModes():
            act(half)

    # waits
    def synchronize(self, stream: str) -> None:
        """The host waits for a stream."""
        self.refuse_in_capture("a synchronize", stream)
        self.machine.synchronize(stream, f"synchronize {len(self.accesses.noted)}")
        self.accesses.synchronize(stream, self.line())
        self._busy.discard(stream)

    def wait_unasked(self, stream: str) -> None:
        """The host waits inside of an operator. Warns or raises RuntimeError if `torch.cuda.set_sync_debug_mode` says so."""
        if self.sync_debug_mode:
            message = "called a synchronizing CUDA operation"
            if self.sync_debug_mode > 1:
                raise RuntimeError(message)
            warnings.warn(message, stacklevel=2)
        self.synchronize(stream)

    def synchronize_all(self) -> None:
        """The host waits for the device."""
        for stream in sorted(self._busy):
            self.synchronize(stream)
        self.machine.pause()

    def record(self, event: Hashable, stream: str) -> None:
        """Marks what a stream was given so far."""
        if self.capture is not None and self.capture.record(event, stream):
            return
        self.machine.record(event, stream, f"record {len(self.accesses.noted)}")
        self.accesses.record(event, stream, self.line())

    def wait_event(self, stream: str, event: Hashable) -> None:
        """A stream's later work waits for what an event's last record marks now."""
        if self.capture is not None and self.capture.wait(event, stream):
            return
        self.machine.wait_event(stream, event, f"stream wait {len(self.accesses.noted)}")
        self.accesses.wait_event(stream, event, self.line())

    def wait(self, event: Hashable) -> None:
        """The host waits for what an event's last record marks."""
        self.machine.synchronize_event(event, f"wait {len(self.accesses.noted)}")
        self.accesses.wait(event, self.line())

    def query(self, event: Hashable) -> bool:
        """Whether what an event's last record marks has ended."""
        answer = self.machine.query(event)
        self.accesses.query(event, answer, self.line())
        return answer

    def refuse_in_capture(self, what: str, stream: str) -> None:
        """Raises RuntimeError where a graph is being captured on a stream, and this can't be part of it."""
        if self.capture is not None and self.capture.wants(stream):
            raise RuntimeError(
                f"{what} while a graph is being captured: it can't be captured, and it would wait for what never runs"
            )

    # the host
    def host(self, what: str, reads: tuple[Rows, ...], writes: tuple[Rows, ...]) -> None:
        """The host reads and writes bytes of pinned memory, right after this."""
        if reads or writes:
            self.machine.pause()
            line = self.line()
            if not writes:
                self._looks.look(reads, line, self.accesses.noted)
            self.accesses.host(reads, writes, what, line)

    # the end
    def finish(self) -> tuple[StagingError, ...]:
        """Lets all streams finish, and says what was found: one finding for each wait that is missing."""
        if not self.ended:
            allocator.collect()
            self.machine.drain()
            self.ended = True
            program = self.accesses.program(_named)
            words = CudaWords(self._place)
            self.findings = tuple(self._error(program, each, words) for each in merged(program))
        return self.findings

    def _error(self, program: Program, found: Merged, words: CudaWords) -> StagingError:
        """A missing wait, and the schedule that holds the first of its accesses back."""
        witness = Hold(program.noted[found.race.first].number or 0, 0)
        return error_of(program, found.race, words, witness, "they overlap", _more(found.more))

    def trace(self) -> Trace:
        """What was issued so far, and what happened, for `kvstage_model.traces`. Each piece of memory is a buffer, a row a byte."""
        noted = self.accesses.noted
        program = tuple(Issued(0, "loop", step, each.operation) for step, each in enumerate(noted))
        numbers = {each.what: number for number, each in enumerate(noted) if each.number is not None}
        events = [TraceEvent(numbers[label], moment) for label, moment in self.machine.log if label in numbers]
        return Trace(program, tuple(events))

    def _place(self, name: str) -> Place | None:
        """Where a block was made, in this run or before."""
        if name in self._made:
            return self._made[name]
        block = allocator.by_name.get(name)
        return None if block is None else Place(block.buffer.memory, block.size, 0, block.line)


def _named(rows: Rows) -> Hashable:
    return rows.buffer.name, rows.start


def _more(count: int) -> str | None:
    return f"the same wait is missing between {count} more pair{'s' if count > 1 else ''} of accesses" if count else None
