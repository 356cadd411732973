"""Backward passes: each node runs on the stream on which its forward operator was issued.

Source: CUDA notes, "Stream semantics of backward passes". Autograd numbers its nodes as they are made, in each thread; so the
stream that was current when a number was reached is that of the node. Between nodes of two streams autograd waits, and at the
end the stream that is current at the call waits for all of them.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch

from ..checked.source_lines import users_line
from . import boot
from .simulation import DEFAULT, Simulation

LEAF = 1 << 62
"""Numbers from here on are those of nodes that add up gradients of leaves, which were not made by an operator."""

TOO_LATE = (
    "this process had run a backward pass before it had a device, and autograd counts devices once: enter simulated_cuda, or give "
    "pytest --kvstage-cuda, before the first backward pass"
)


class Backward:
    """The streams of one run's backward passes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._numbers: list[int] = [-1]
        self._streams: list[str] = [DEFAULT]
        self._caller = DEFAULT
        self._last: str | None = None
        self._used: list[str] = []
        simulation.backward_stream = self.stream  # type: ignore[method-assign]
        simulation.note_forward = self.note  # type: ignore[method-assign]

    def note(self) -> None:
        """The current stream is about to change: what was made since the last change was made on it."""
        if torch._C._current_autograd_node() is None:
            number = torch._C._autograd._get_sequence_nr()
            self._numbers.append(number)
            self._streams.append(self._simulation.chosen or DEFAULT)

    def stream(self) -> str | None:
        """The stream of the node that is running in this thread, if any. If another one ran before, it waits for that."""
        node: Any = torch._C._current_autograd_node()
        if node is None:
            return None
        number = node._sequence_nr()
        stream = self._caller if number >= LEAF else self._made_on(number)
        if self._last is not None and stream != self._last:
            self._wait(stream, self._last)
        self._last = stream
        if stream not in self._used:
            self._used.append(stream)
        return stream

    def _made_on(self, number: int) -> str:
        """The stream that was current until a number was reached which is not yet this one's."""
        at = bisect_right(self._numbers, number)
        return self._streams[at] if at < len(self._streams) else self._caller

    def _wait(self, stream: str, other: str) -> None:
        event = ("backward", len(self._simulation.accesses.noted))
        self._simulation.record(event, other)
        self._simulation.wait_event(stream, event)

    def running(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Torch's function that runs a pass."""

        def run(*args: Any, **kwargs: Any) -> Any:
            outer, line = (self._caller, self._last, self._used), self._simulation.backward_line
            self._simulation.backward_line = users_line() or line
            self.note()
            self._caller = self._simulation.stream
            self._last, self._used = self._caller, []
            try:
                return original(*args, **kwargs)
            except RuntimeError as error:
                if "device_ready_queues_" in str(error):
                    raise boot.NoCudaHereError(TOO_LATE) from error
                raise
            finally:
                for stream in self._used:
                    if stream != self._caller:
                        self._wait(self._caller, stream)
                self._caller, self._last, self._used = outer
                self._simulation.backward_line = line

        return run
