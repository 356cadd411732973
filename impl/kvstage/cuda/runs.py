"""Which run code is in: the innermost one that has begun and not ended."""

from . import boot
from .simulation import Simulation, allocator

_running: list[Simulation] = []


def running() -> Simulation:
    """The run that code is in. Raises NoCudaHereError outside of any."""
    if not _running:
        raise boot.NoCudaHereError(
            "there is a simulated device only inside `with kvstage.simulated_cuda():`, or under pytest --kvstage-cuda"
        )
    return _running[-1]


def begin(simulation: Simulation) -> None:
    """Code is in this run from now on; what was running before goes on after it."""
    if _running:
        _running[-1].machine.drain()
    _running.append(simulation)
    allocator.on_free = simulation.freed


def end(simulation: Simulation) -> None:
    """Code has left a run."""
    _running.remove(simulation)
    allocator.waiting.clear()
    allocator.on_free = _running[-1].freed if _running else lambda block: None
