"""What the host does with pinned memory: noted for each operator, in each thread; and for what reads a tensor around operators."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import boot
from .operators import exchanged, operator, tensors_in
from .runs import running
from .simulation import Simulation, allocator

READ_WHOLE = ("numpy", "tolist", "__array__")
"""Functions of a tensor that read all of its bytes, and not by an operator."""


class HostMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees each operator on tensors of the host, with its schema."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch's word for "wrap this for the compiler", which is not needed: importing that takes seconds."""
        return False

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._simulation = simulation

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Notes what an operator does with pinned memory, and runs it."""
        kwargs = kwargs or {}
        if not allocator.pinned or self._simulation.ended:
            return func(*args, **kwargs)
        known = operator(func)
        if known.is_view:
            return func(*args, **kwargs)
        tensors = list(tensors_in((args, kwargs)))
        if not tensors or any(tensor.device.type != "cpu" or type(tensor) not in PLAIN for tensor in tensors) or _to_device(kwargs):
            return func(*args, **kwargs)
        if any(map(allocator.is_pinned, tensors)):
            marks = {id(tensor) for tensor in tensors_in(known.written(args, kwargs))}
            with self._simulation.lock, boot.BelowModes():
                reads = tuple(rows for each in tensors if id(each) not in marks for rows in allocator.rows(each))
                writes = tuple(rows for each in tensors if id(each) in marks for rows in allocator.rows(each))
                allocator.collect()
                self._simulation.host(known.text, reads, writes)
        return func(*args, **kwargs)


PLAIN = (torch.Tensor, torch.nn.Parameter)


def _to_device(kwargs: dict[str, Any]) -> bool:
    where = kwargs.get("device")
    return where is not None and torch.device(where).type == "cuda"


def reading(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A function of a tensor that reads it whole."""

    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "cpu" and allocator.is_pinned(self):
            simulation = running()
            with simulation.lock:
                simulation.host(what, allocator.rows(self), ())
        return original(self, *args, **kwargs)

    return read


def pinned_copy(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor.pin_memory()`: a pinned copy, made by the host. Raises RuntimeError for a tensor of the device."""
    if tensor.is_cuda:
        raise RuntimeError("cannot pin 'torch.cuda' tensors: only dense CPU tensors can be pinned")
    if allocator.is_pinned(tensor):
        return tensor
    simulation = running()
    with simulation.lock:
        stride = torch.empty_like(tensor, device="meta").stride()
        new = simulation.allocate(tensor.shape, stride, tensor.dtype, pinned=True)
        with boot.BelowModes():
            allocator.plain(new).copy_(tensor.detach())
    return new


def is_pinned(tensor: torch.Tensor, device: Any = None) -> bool:
    """`tensor.is_pinned()`."""
    return tensor.device.type == "cpu" and allocator.is_pinned(tensor)


def pinning(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a tensor, with pin_memory."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.pop("pin_memory", False):
            return original(*args, **kwargs)
        made = original(*args, **kwargs)
        return pinned_copy(made).requires_grad_(made.requires_grad)

    make.__name__ = getattr(original, "__name__", "make")
    return make


def watched_start(original: Callable[..., Any], simulation: Simulation) -> Callable[..., Any]:
    """`Thread.start`, for threads whose uses of pinned memory are noted too."""

    def start(self: threading.Thread, *args: Any, **kwargs: Any) -> Any:
        run = self.run

        def watched() -> None:
            with HostMode(simulation):
                run()

        self.run = watched  # type: ignore[method-assign]
        return original(self, *args, **kwargs)

    return start


__all__ = ["HostMode", "exchanged", "is_pinned", "pinned_copy", "pinning", "reading", "watched_start"]
