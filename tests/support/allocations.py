"""Counts what allocates: of torch's operators those that make new memory, and `Device.allocate`."""

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kvstage import ThreadDevice
from kvstage_model.language.buffers import Memory


class Allocations(TorchDispatchMode):
    """Inside the `with`, counts operators whose result lies in other memory than all of their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = [each for each in (*args, *(kwargs or {}).values()) if isinstance(each, torch.Tensor)]
        memory = {each.untyped_storage().data_ptr() for each in given}
        for made in result if isinstance(result, tuple | list) else [result]:
            if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in memory:
                self.counted[str(func)] += 1
        return result


class CountingDevice(ThreadDevice):
    """Remembers what was allocated."""

    def __init__(self) -> None:
        super().__init__()
        self.allocated: list[tuple[Memory, int]] = []

    def allocate(self, memory, size):
        self.allocated.append((memory, size))
        return super().allocate(memory, size)
