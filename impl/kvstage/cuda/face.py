"""The faces of torch that ask for a device: torch.cuda, torch.accelerator, pinned memory, storages. A run sets them."""

import contextlib
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
import torch.utils._device

from kvstage_model.schedules.replay_strings import from_string
from kvstage_model.schedules.schedule import IssueOrder, Schedule

from . import boot, generators, graphs, host, streams
from .backward import Backward
from .copies import OVERRIDDEN
from .figures import again, device_functions, memory_functions, nothing, one, random_functions, stream_functions, zero
from .kernels import fallback
from .runs import begin, end, running
from .simulation import Simulation, allocator

FACTORIES = (
    *("empty", "zeros", "ones", "full", "rand", "randn", "tensor", "arange", "empty_strided", "randint"),
    *("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"),
)
METHODS = ["new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided"]

_libraries: list[Any] = []


def install() -> None:
    """Boots, and gives torch the kernels. Once for a process."""
    boot.boot()
    if _libraries:
        return
    boot.leave_uncompiled("kvstage", "kvstage_model")
    torch.utils._device._device_constructors()  # it remembers the functions that are replaced below
    make: Any = torch.library.Library
    anything, some = make("_", "IMPL"), make("aten", "IMPL")
    _libraries.extend((anything, some))
    anything.fallback(fallback, "CUDA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in OVERRIDDEN:
            overload = getattr(torch.ops.aten, name).default
            some.impl(name, partial(fallback, overload), "CUDA")


class _Patches:
    """Attributes that are replaced, and put back in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        missing = object()
        old = getattr(owner, name, missing) if isinstance(owner, types.ModuleType) else owner.__dict__.get(name, missing)
        self._undo.append(lambda: delattr(owner, name) if old is missing else setattr(owner, name, old))
        setattr(owner, name, value)

    def set_all(self, owner: Any, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.set(owner, name, value)

    def undo(self) -> None:
        for each in reversed(self._undo):
            each()


@contextlib.contextmanager
def simulated_cuda(
    schedule: str | Schedule | None = None, *, counts_on: Iterable[str] = (), raises: bool = True
) -> Iterator[Simulation]:
    """Code inside sees one CUDA device, whose streams move as the schedule says: one of kvstage_model.schedules, or its string.

    Leaving it lets all work end, and raises the first finding; where the code has raised an error already, findings become notes of
    that. `findings` of what it gives has all of them afterwards; with `raises=False` that is all that happens.
    """
    install()
    schedule = from_string(schedule) if isinstance(schedule, str) else schedule or IssueOrder()
    simulation, patches = Simulation(schedule, counts_on), _Patches()
    _patch(patches, simulation)
    begin(simulation)
    try:
        with host.HostMode(simulation):
            yield simulation
        found = simulation.finish()
    except BaseException as error:
        for each in simulation.finish():
            error.add_note(str(each))
        raise
    finally:
        simulation.ended = True
        end(simulation)
        patches.undo()
    if found and raises:
        for other in found[1:]:
            found[0].add_note(str(other))
        raise found[0]


def _patch(patches: _Patches, simulation: Simulation) -> None:
    cuda, accelerator = torch.cuda, torch.accelerator
    for owner in (cuda, cuda.streams, torch):
        patches.set_all(owner, {"Stream": streams.Stream, "Event": streams.Event})
    for owner in (cuda, cuda.streams):
        patches.set(owner, "ExternalStream", streams.ExternalStream)
    for owner in (cuda, cuda.graphs):
        patches.set_all(owner, {"CUDAGraph": graphs.CUDAGraph, "graph": graphs.graph})
    for owner in (cuda, cuda.graphs):
        patches.set(owner, "is_current_stream_capturing", graphs.is_capturing)
    patches.set_all(cuda, stream_functions() | device_functions() | memory_functions() | random_functions())
    figures = memory_functions() | random_functions()
    for owner in (cuda.memory, cuda.random):
        patches.set_all(owner, {name: value for name, value in figures.items() if hasattr(owner, name)})
    patches.set_all(
        accelerator,
        {
            "current_stream": again(streams.current_stream),
            "set_stream": again(streams.set_stream),
            "synchronize": again(streams.synchronize),
            "is_available": lambda: True,
            "device_count": one(),
            "current_device_index": zero(),
            "current_device_idx": zero(),
            "set_device_index": nothing(),
            "set_device_idx": nothing(),
            "current_accelerator": lambda check_available=False: torch.device("cuda"),
        },
    )
    patches.set_all(accelerator, {name: value for name, value in memory_functions().items() if hasattr(accelerator, name)})
    patches.set_all(
        torch._C,
        {
            "_cuda_getDeviceCount": one(),
            "_cuda_getDevice": zero(),
            "_cuda_setDevice": nothing(),
            "_cuda_exchangeDevice": zero(),
            "_cuda_maybeExchangeDevice": zero(),
            "_cuda_isCurrentStreamCapturing": again(graphs.is_capturing),
            "_has_cuda": True,
            "_host_emptyCache": nothing(),
            "_cuda_getCurrentRawStream": lambda device=0: streams.current_stream().stream_id,
        },
    )
    _patch_tensors(patches)
    patches.set(threading.Thread, "start", host.watched_start(threading.Thread.start, simulation))
    backward = Backward(simulation)
    autograd: Any = torch.autograd
    patches.set(autograd, "_engine_run_backward", backward.running(autograd._engine_run_backward))


def _patch_tensors(patches: _Patches) -> None:
    tensor, storage = torch.Tensor, torch.UntypedStorage
    for name in FACTORIES:
        patches.set(torch, name, host.pinning(getattr(torch, name)))
    for name in METHODS:
        patches.set(tensor, name, host.pinning(getattr(tensor, name)))
    for name in host.READ_WHOLE:
        patches.set(tensor, name, host.reading(getattr(tensor, name), name))
    patches.set_all(tensor, {"pin_memory": lambda self, device=None: host.pinned_copy(self), "is_pinned": host.is_pinned})
    patches.set(tensor, "__deepcopy__", _deepcopy(tensor.__deepcopy__))
    patches.set_all(
        storage,
        {
            "cpu": _storage_to(storage.cpu, "cpu"),
            "cuda": _storage_to(storage.cuda, "cuda"),
            "to": lambda self, *, device, non_blocking=False: _moved(self, torch.device(device)),
            "resize_": _resized(storage.resize_),
            "is_pinned": lambda self, device="cuda": (block := allocator.blocks.get(self.data_ptr())) is not None and block.pinned,
        },
    )
    patches.set(torch, "Generator", generators.Generator)


def _moved(storage: Any, device: torch.device) -> Any:
    bytes_ = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return bytes_.to(device, copy=True).untyped_storage()


def _storage_to(original: Callable[..., Any], where: str) -> Callable[..., Any]:
    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "cpu" and where == "cpu":
            return original(self)
        return _moved(self, torch.device(where))

    return move


def _resized(original: Callable[..., Any]) -> Callable[..., Any]:
    def resize(self: Any, size: int) -> Any:
        if self.device.type != "cuda":
            return original(self, size)
        simulation = running()
        with simulation.lock, boot.BelowModes():
            simulation.resize(self, int(size))
        return self

    return resize


def _deepcopy(original: Callable[..., Any]) -> Callable[..., Any]:
    def copy(self: torch.Tensor, memo: dict[int, Any]) -> Any:
        if not self.is_cuda or type(self) is not torch.Tensor or not self.is_leaf:
            return original(self, memo)
        if id(self) not in memo:
            memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        return memo[id(self)]

    return copy
