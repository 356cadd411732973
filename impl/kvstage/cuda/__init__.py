"""Unmodified torch.cuda code under schedules, on a machine without a GPU.

Read `simulation` first: one run. `face` has `simulated_cuda`, `kernels` gets each operator, `copies` those that move bytes
between host and device, `memory` is the allocators' rules, `boot` the only file that touches what torch does not document.
"""

from .boot import NoCudaHereError, booted
from .face import simulated_cuda
from .simulation import Simulation

__all__ = ["NoCudaHereError", "Simulation", "booted", "simulated_cuda"]
