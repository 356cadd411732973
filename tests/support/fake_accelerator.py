"""An accelerator that is none: torch's interface to streams, on the CPU, noting who did what.

`Noted(stream, what)` are in the order of the host's calls. Tensor operations are noted with the stream that was current.
The `fake` does its work at once; the `late` one puts off what moves rows until somebody waits for it: a missing wait or
a missing order shows in the bytes.
"""

import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kvstage.devices import accelerator, accelerator_kernels

CALLER = "caller"
MOVES = {"copy_": "copy", "index.Tensor_out": "gather", "index_put_": "scatter"}


def within(tensor: torch.Tensor, memory: list["weakref.ref[torch.Tensor]"]) -> bool:
    """Whether a tensor begins inside one of those that live."""
    begin, live = tensor.data_ptr(), [each for each in (ref() for ref in memory) if each is not None]
    return any(each.data_ptr() <= begin < each.data_ptr() + each.untyped_storage().nbytes() for each in live)


@dataclass(frozen=True)
class Noted:
    stream: str
    what: str


class FakeAccelerator:
    """Stands for `torch` in the modules of the device, and for `torch.cuda`."""

    def __init__(self) -> None:
        self.log: list[Noted] = []
        self.pinned: list[weakref.ref[torch.Tensor]] = []
        self.device_memory: list[weakref.ref[torch.Tensor]] = []
        self.allocated: list[tuple[str, int]] = []
        self.current = CALLER
        self.streams: list[str] = []
        self.finished = True
        self.late: set[str] | None = None
        """Streams beside those of the device whose work is put off; None: nothing is."""
        self.running = False
        self._queues: dict[str, deque[Callable[[], object]]] = defaultdict(deque)
        self._issued: dict[str, int] = defaultdict(int)
        self._ended: dict[str, int] = defaultdict(int)
        fake = self

        class Stream:
            def __init__(self, device: Any = None, name: str | None = None) -> None:
                self.name = name or f"side {len(fake.streams)}"
                fake.streams.append(self.name)

            def synchronize(self) -> None:
                fake.note(self.name, "synchronize")
                fake.run(self.name)

        class Event:
            def __init__(self, device: Any = None) -> None:
                self.marks: str | None = None
                self.number = 0

            def record(self, stream: Stream) -> None:
                self.marks, self.number = stream.name, fake._issued[stream.name]
                fake.note(stream.name, "record")

            def wait(self, stream: Stream) -> None:
                if self.marks is not None:
                    fake.note(stream.name, f"wait for {self.marks}")
                    marks, number = self.marks, self.number
                    fake.put(stream.name, lambda: fake.run(marks, number))

            def query(self) -> bool:
                return fake.finished and (self.marks is None or fake._ended[self.marks] >= self.number)

            def synchronize(self) -> None:
                fake.note("host", f"wait for {self.marks}")
                if self.marks is not None:
                    fake.run(self.marks, self.number)

        self.Stream, self.Event = Stream, Event

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def note(self, stream: str, what: str) -> None:
        self.log.append(Noted(stream, what))

    def put(self, stream: str, work: Callable[[], object]) -> None:
        """Does it now, or puts it off."""
        if self.late is None or (stream == CALLER and CALLER not in self.late):
            work()
            return
        self._queues[stream].append(work)
        self._issued[stream] += 1

    def run(self, stream: str, number: int | None = None) -> None:
        """Does what is put off on a stream, up to a number of pieces, or all."""
        with torch.inference_mode():
            while self._ended[stream] < (self._issued[stream] if number is None else number):
                work = self._queues[stream].popleft()
                self._ended[stream] += 1
                before, self.running = self.running, True
                work()
                self.running = before

    def get_device_module(self, device: Any) -> "FakeAccelerator":
        return self

    def current_stream(self, device: Any) -> Any:
        return self.Stream(name=self.current)

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.current = self.current, stream.name
        yield
        self.current = before

    def empty(self, size: Any, *, pin_memory: bool = False, **options: Any) -> torch.Tensor:
        tensor = torch.empty(size, **options)
        if pin_memory:
            self.pinned.append(weakref.ref(tensor))
        elif isinstance(options["device"], torch.device):
            self.allocated.append((self.current, tensor.numel()))
            self.device_memory.append(weakref.ref(tensor))
        return tensor

    def on_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """Says that a tensor, which the caller keeps, is in the device's memory."""
        self.device_memory.append(weakref.ref(tensor))
        return tensor

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Says that a tensor, which the caller keeps, is pinned."""
        self.pinned.append(weakref.ref(tensor))
        return tensor

    def synchronize(self) -> None:
        self.note("device", "synchronize")


class Noting(TorchDispatchMode):
    """Notes what torch moves, and on which stream."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch's word for "wrap this for the compiler": importing that takes seconds, and nothing is compiled here."""
        return False

    def __init__(self, fake: FakeAccelerator) -> None:
        super().__init__()
        self._fake = fake

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        options, moves = options or {}, [what for name, what in MOVES.items() if f"aten.{name}" in str(function)]
        if not moves or self._fake.running:
            return function(*arguments, **options)
        self._fake.note(self._fake.current, moves[0])
        self._fake.put(self._fake.current, lambda: function(*arguments, **options))
        return options.get("out", arguments[0])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAccelerator]:
    """Its memory is the CPU's: what it has allocated as pinned or as its own, and what a test says is."""
    fake = FakeAccelerator()
    monkeypatch.setattr(accelerator, "torch", fake)
    monkeypatch.setattr(accelerator_kernels, "torch", fake)
    monkeypatch.setattr(accelerator, "_accelerator", lambda device: torch.device("cpu"))
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: within(tensor, fake.pinned))
    for module in (accelerator, accelerator_kernels):
        monkeypatch.setattr(module, "at_host", lambda tensor: not within(tensor, fake.device_memory))
    with Noting(fake):
        yield fake


@pytest.fixture
def late(fake: FakeAccelerator) -> FakeAccelerator:
    """The same, late; the caller's stream is not, unless a test adds CALLER to `late.late`."""
    fake.late = set()
    return fake
