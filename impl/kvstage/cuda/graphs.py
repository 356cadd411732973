"""torch.cuda.CUDAGraph: operators are captured with the addresses that they were given, and issued anew by each replay.

Sources: CUDA notes, "CUDA Graphs"; CUDA Programming Guide, "Stream capture". So a pinned source is read again at each replay,
and a replay's operators wait for one another as the captured streams did; all of a replay comes in the order of the stream that
it is launched on.
"""

from collections.abc import Callable
from typing import Any

from .memory import Block
from .runs import running
from .simulation import Simulation, Touched
from .streams import Stream, StreamContext, name_of

Captured = tuple[str, Touched, Callable[[int], None], Callable[[], Touched] | None]


class Capture:
    """What is captured, and on which streams: the first one, and those that wait for an event of a captured one."""

    def __init__(self, stream: str) -> None:
        self.operations: list[Captured] = []
        self._streams = {stream}
        self._events: set[Any] = set()
        self._kept: list[Block] = []

    def wants(self, stream: str) -> bool:
        """Whether work on a stream is captured."""
        return stream in self._streams

    def keep(self, block: Block) -> None:
        """Memory that was allocated while capturing stays the graph's."""
        self._kept.append(block)

    def add(self, what: str, touched: Touched, move: Callable[[int], None], exactly: Callable[[], Touched] | None) -> None:
        """One operator."""
        self.operations.append((what, touched, move, exactly))

    def record(self, event: Any, stream: str) -> bool:
        """Whether a record is part of the graph."""
        if self.wants(stream):
            self._events.add(event)
        return self.wants(stream)

    def wait(self, event: Any, stream: str) -> bool:
        """Whether a wait is part of the graph: a stream that waits for a captured event is captured from then on."""
        if event in self._events:
            self._streams.add(stream)
        return self.wants(stream)


class CUDAGraph:
    """A graph of one simulated device."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._capture: Capture | None = None
        self._simulation: Simulation | None = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Captures what the current stream is given from now on. Raises RuntimeError on the default stream, as torch does."""
        simulation = running()
        if simulation.stream == "default":
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        if simulation.capture is not None:
            raise RuntimeError("a graph is being captured already")
        self._simulation, self._capture = simulation, Capture(simulation.stream)
        simulation.capture = self._capture

    def capture_end(self) -> None:
        """Ends the capture."""
        running().capture = None

    def replay(self) -> None:
        """Issues all that was captured on the current stream."""
        simulation = running()
        if self._capture is None or self._simulation is not simulation:
            raise RuntimeError("a graph is captured before it is replayed, in the same run of the simulation")
        with simulation.lock:
            for what, touched, move, exactly in self._capture.operations:
                simulation.launch(f"{what} (replayed)", touched, move, exactly=exactly)

    def reset(self) -> None:
        """Forgets what was captured."""
        self._capture = None

    def pool(self) -> tuple[int, int]:
        """The graph's memory pool, which is nothing here: graphs keep their memory."""
        return (0, id(self))

    def instantiate(self) -> None:
        """Nothing is left to do."""


class graph:  # noqa: N801 - torch's name
    """`with torch.cuda.graph(g):`."""

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global") -> None:
        self._graph = cuda_graph
        self._context = StreamContext(stream or Stream())

    def __enter__(self) -> None:
        simulation = running()
        simulation.synchronize_all()
        self._context.__enter__()
        self._graph.capture_begin()

    def __exit__(self, *error: Any) -> None:
        self._graph.capture_end()
        self._context.__exit__(*error)


def is_capturing() -> bool:
    """`torch.cuda.is_current_stream_capturing`."""
    simulation = running()
    return simulation.capture is not None and simulation.capture.wants(simulation.stream)


__all__ = ["CUDAGraph", "Capture", "graph", "is_capturing", "name_of"]
