"""torch.cuda.Stream, Event, ExternalStream and the current stream, on the simulated device.

Sources: docs of each; CUDA notes, "CUDA streams". Streams of torch are made so that they don't wait for the default stream by
themselves, so that one is a stream like the others. The current stream is that of the thread.
"""

from itertools import count
from typing import Any

import torch

from .runs import running
from .simulation import DEFAULT

_marks, _streams = count(), count(1)


def name_of(stream_id: int) -> str:
    """What a stream is called in findings and traces."""
    return str(stream_id) if stream_id else DEFAULT


class Stream(torch.Stream):
    """A stream. `priority` is noted and changes nothing: every order that it allows is one without it."""

    def __new__(cls, device: Any = None, priority: int = 0, stream_id: int | None = None, **_: Any) -> "Stream":
        """A new stream, or another handle of the one with that number."""
        number = next(_streams) if stream_id is None else stream_id
        stream = super().__new__(cls, stream_id=number, device_index=0, device_type=1)
        stream.__dict__["priority"] = priority
        return stream

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    @property
    def name(self) -> str:
        """What findings call it."""
        return name_of(self.stream_id)

    @property
    def cuda_stream(self) -> int:
        """A number, no pointer."""
        return self.stream_id

    @property
    def _as_parameter_(self) -> int:
        raise RuntimeError("a simulated stream has no address to give to native code")

    def synchronize(self) -> None:
        """The host waits for all that the stream was given."""
        simulation = running()
        with simulation.lock:
            simulation.synchronize(self.name)

    def query(self) -> bool:
        """Whether all has ended that the stream was given."""
        event = Event()
        event.record(self)
        return event.query()

    def wait_event(self, event: Any) -> None:
        """Later work of the stream waits for the event's last record."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Later work of the stream waits for all that another one was given so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        """Records an event, a new one if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch._C.Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __enter__(self) -> "Stream":
        self.__dict__.setdefault("_before", []).append(running().chosen)
        running().chosen = self.name
        return self

    def __exit__(self, *_: Any) -> None:
        running().chosen = self.__dict__["_before"].pop()

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:0 simulated={self.name}>"


class ExternalStream:
    """A stream that other code has made: refused."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            "torch.cuda.ExternalStream on a simulated device: no other code has streams on it, use torch.cuda.Stream()"
        )


class Event:
    """An event: captures what the stream was given at its last record; never recorded, nobody waits for it."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any) -> None:
        if interprocess:
            raise RuntimeError("an event between processes on a simulated device: it is in one process")
        self.timed, self.device = enable_timing, torch.device("cuda", 0)
        self.event_id = self.cuda_event = next(_marks)
        self._key = ("event", self.event_id)
        self._at: int | None = None

    def record(self, stream: Any = None) -> None:
        """Marks what a stream was given so far, the current one if none is given."""
        simulation = running()
        with simulation.lock:
            self._at = simulation.accesses.asynchronous
            simulation.record(self._key, simulation.stream if stream is None else name_of(stream.stream_id))

    def wait(self, stream: Any = None) -> None:
        """Later work of a stream waits for what the last record marks now."""
        simulation = running()
        with simulation.lock:
            simulation.wait_event(simulation.stream if stream is None else name_of(stream.stream_id), self._key)

    def synchronize(self) -> None:
        """The host waits for what the last record marks."""
        simulation = running()
        with simulation.lock:
            simulation.wait(self._key)

    def query(self) -> bool:
        """Whether what the last record marks has ended."""
        simulation = running()
        with simulation.lock:
            return simulation.query(self._key)

    def elapsed_time(self, end_event: "Event") -> float:
        """A number of milliseconds that says nothing: the operations that were issued in between."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(end_event._at - self._at)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event simulated={self.event_id}>"


class StreamContext:
    """`with torch.cuda.stream(stream):`."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> Any:
        if self.stream is not None:
            self._before = running().chosen
            running().chosen = name_of(self.stream.stream_id)
        return self.stream

    def __exit__(self, *_: Any) -> None:
        if self.stream is not None:
            running().chosen = self._before


def current_stream(device: Any = None) -> Stream:
    """The current stream of this thread."""
    name = running().stream
    return Stream(stream_id=0 if name == DEFAULT else int(name))


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to where no other is chosen."""
    return Stream(stream_id=0)


def set_stream(stream: Any) -> None:
    """Chooses the current stream of this thread."""
    if stream is not None:
        running().chosen = name_of(stream.stream_id)


def synchronize(device: Any = None) -> None:
    """The host waits for the device."""
    simulation = running()
    with simulation.lock:
        simulation.synchronize_all()
