"""Makes a CPU build of torch believe in one CUDA device. The only file that touches what torch does not document.

Each private thing, and why:

- `c10::impl::device_guard_impl_registry` (data of libc10.so): torch has a guard that does nothing, for a device that has no runtime
  here, and installs it on `_ensureCUDADeviceGuardSet` if a guard is there that counts no device; the one of lazy tensors does.
  Without a guard no operator accepts a tensor on cuda.
- `at::detail::getCUDAHooks()` (libtorch_cpu.so): autograd and `torch.accelerator` ask this object whether there is a device. It
  gets a table of virtual functions of its own; a header that torch's wheel ships says which place in the table is whose.
- `torch._C._from_dlpack`: makes a plain tensor on cuda:0 of memory that is given, by the public DLPack layout. Its deleter is
  CPython's `Py_IncRef`, which adds one to the first word of what it gets, without Python, without the interpreter's lock, in any
  thread and while an exception unwinds. So a free is a number that `freed` reads, and runs no code where none may run.
- `StorageImpl`'s size (found by its value at a fixed place behind the data pointer): `untyped_storage().resize_` changes it.
- `torch._C._dynamo.eval_frame.set_code_exec_strategy`: torch.compile asks for the current stream while it looks at a function,
  and must not look at ours.
- `torch._C._DisableTorchDispatch` and `_InferenceMode`: what a kernel does is seen by no mode of the code that has issued it.
- `torch.cuda._initialized`, so that nothing looks for a driver.

`boot` tries each of them on a tensor, and raises NoCudaHereError with what failed. It can't be undone: boot in a process of its
own.
"""

import ctypes
import platform
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import torch

from ..errors import KVStageError

VERSION = "2.13."
"""Of torch: the one whose private parts are known."""

SLOTS = 1 << 20
"""Tensors with memory of their own that may live at once; 64 bytes each, of memory that is not there before it is used."""

DL_CPU, DL_CUDA = 1, 2
DL_TYPES = {
    torch.uint8: (1, 8),
    torch.int8: (0, 8),
    torch.int16: (0, 16),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.bfloat16: (4, 16),
    torch.complex64: (5, 64),
    torch.complex128: (5, 128),
    torch.bool: (6, 8),
}
"""DLPack's code and bits of a dtype."""

_booted = False


class NoCudaHereError(KVStageError):
    """A device can't be simulated with this build of torch, on this machine, or in this state of the process."""


def boot() -> None:
    """Installs the device, once for a process. Raises NoCudaHereError where that can't be done or does not work."""
    global _booted
    if _booted:
        return
    _refuse()
    try:
        _install_guard()
        _install_hooks()
        torch.cuda._initialized = True
        _self_test()
    except NoCudaHereError:
        raise
    except Exception as error:
        raise NoCudaHereError(f"this build of torch ({torch.__version__}) is not as kvstage.cuda knows it: {error}") from error
    _booted = True


def booted() -> bool:
    """Whether this process has the device."""
    return _booted


def _refuse() -> None:
    if not torch.__version__.startswith(VERSION):
        raise NoCudaHereError(f"kvstage.cuda knows torch {VERSION}*, and this is {torch.__version__}: install torch=={VERSION}0")
    if torch.version.cuda is not None or torch.version.hip is not None:
        raise NoCudaHereError(
            f"this is a build of torch for GPUs ({torch.__version__}), whose real kernels would run: install the CPU build of "
            f"torch {VERSION}0 in an environment of its own"
        )
    if sys.platform != "linux" or platform.python_implementation() != "CPython" or struct.calcsize("P") != 8:
        raise NoCudaHereError("kvstage.cuda needs CPython on 64-bit Linux")


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))


def _install_guard() -> None:
    registry = ctypes.c_void_p.in_dll(_library("libc10.so"), "_ZN3c104impl26device_guard_impl_registryE")
    guards = (ctypes.c_void_p * 20).from_address(ctypes.addressof(registry))
    cuda, lazy = 1, 17  # numbers of c10::DeviceType
    if guards[cuda] is None:
        guards[cuda] = guards[lazy]
        torch._C._ensureCUDADeviceGuardSet()
        if guards[cuda] == guards[lazy]:
            raise NoCudaHereError("torch has not replaced a guard that counts no device by the one that does nothing")


def _for_ever(thing: object) -> None:
    """Keeps an object for longer than the interpreter lives: C++ calls it when it tears down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _install_hooks() -> None:
    library = _library("libtorch_cpu.so")
    get = library._ZN2at6detail12getCUDAHooksEv
    get.restype = ctypes.c_void_p
    hooks = ctypes.c_void_p.from_address(get())
    header = Path(torch.__file__).parent / "include" / "ATen" / "detail" / "AcceleratorHooksInterface.h"
    names = re.findall(r"^\s+virtual [^(]*?(~?\w+)\(", header.read_text(encoding="utf-8"), re.MULTILINE)
    places = {name: number + 1 for number, name in enumerate(names)} | {"hasCUDA": len(names) + 1}  # a destructor takes two
    assert hooks.value is not None
    table = (ctypes.c_void_p * 120)(*(ctypes.c_void_p * 120).from_address(hooks.value - 16))
    this, index, truth = ctypes.c_void_p, ctypes.c_int8, ctypes.c_bool
    answers: dict[str, tuple[tuple[Any, ...], Any]] = {
        "isBuilt": ((truth, this), lambda _: True),
        "isAvailable": ((truth, this), lambda _: True),
        "hasCUDA": ((truth, this), lambda _: True),
        "hasPrimaryContext": ((truth, this, index), lambda _, device: device <= 0),
        "init": ((None, this), lambda _: None),
        "deviceCount": ((index, this), lambda _: 1),
        "setCurrentDevice": ((None, this, index), lambda _, device: None),
        "getCurrentDevice": ((index, this), lambda _: 0),
        "exchangeDevice": ((index, this, index), lambda _, device: 0),
        "maybeExchangeDevice": ((index, this, index), lambda _, device: 0),
    }
    missing = set(answers) - set(places)
    if missing:
        raise NoCudaHereError(f"{header.name} has no {', '.join(sorted(missing))}")
    for name, (signature, answer) in answers.items():
        function = ctypes.CFUNCTYPE(*signature)(answer)
        _for_ever(function)
        table[places[name] + 2] = ctypes.cast(function, ctypes.c_void_p).value
    for name, symbol in (
        ("getDefaultGenerator", "_ZN2at6detail22getDefaultCPUGeneratorEv"),
        ("getNewGenerator", "_ZN2at6detail18createCPUGeneratorEm"),
    ):
        table[places[name] + 2] = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    _for_ever(table)
    hooks.value = ctypes.addressof(table) + 16
    accelerator = torch._C._accelerator_getAccelerator()
    if accelerator.type != "cuda":
        raise NoCudaHereError(f"torch's accelerator is {accelerator} after the hooks were installed")


_HEAD = struct.Struct("<QiiiBBHQQQQQ")  # DLManagedTensor
_slots = np.zeros((SLOTS, _HEAD.size // 8), np.int64)
_bytes = memoryview(_slots.data).cast("B")
_used = 0
_free: list[int] = []
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_deleter = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value or 0
_start = int(_slots.ctypes.data)
_for_ever(_slots)


def lend(
    address: int, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, *, cuda: bool
) -> tuple[torch.Tensor, int]:
    """A tensor on memory at an address, and the number that `freed` gives when the last tensor on that storage is gone.

    `stride` is in elements. `dtype` is one of DL_TYPES. Raises MemoryError where SLOTS tensors live.
    """
    global _used
    if _free:
        slot = _free.pop()
    elif _used < SLOTS:
        slot, _used = _used, _used + 1
    else:
        raise MemoryError(f"more than {SLOTS} simulated tensors live at once")
    count = len(shape)
    sizes = (ctypes.c_int64 * (2 * count))(*shape, *stride)
    place = ctypes.addressof(sizes)
    code, bits = DL_TYPES[dtype]
    kind = DL_CUDA if cuda else DL_CPU
    _HEAD.pack_into(_bytes, slot * _HEAD.size, address, kind, 0, count, code, bits, 1, place, place + 8 * count, 0, 0, _deleter)
    tensor = torch._C._from_dlpack(_capsule(_start + slot * _HEAD.size, b"dltensor", None))
    _slots[slot, 0] = 0  # torch has copied what it needs: from here on this word counts frees
    return tensor, slot


def freed() -> list[int]:
    """The numbers of the storages that are gone since the last call, in no order."""
    gone: list[int] = np.flatnonzero(_slots[:_used, 0]).tolist()
    if gone:
        _slots[gone, 0] = 0
        _free.extend(gone)
    return gone


def set_size(storage: torch.UntypedStorage, size: int) -> None:
    """Changes how many bytes a storage says that it has. Its memory stays."""
    words = (ctypes.c_uint64 * 12).from_address(storage._cdata)
    words[_size_place(storage)] = size


def _size_place(storage: torch.UntypedStorage) -> int:
    words = (ctypes.c_uint64 * 12).from_address(storage._cdata)
    data = list(words).index(storage.data_ptr())
    place = data + 4  # behind the data pointer: its context, the context's deleter, the device
    if words[place] != storage.nbytes():
        raise NoCudaHereError("a storage does not keep its size where kvstage.cuda knows it")
    return place


def _self_test() -> None:
    """One of each: a tensor that is on cuda:0, whose bytes are ours, whose free is seen, and whose storage can change its size."""
    memory = np.arange(24, dtype=np.float32)
    tensor, slot = lend(int(memory.ctypes.data), (2, 3), (3, 1), torch.float32, cuda=True)
    if tensor.device != torch.device("cuda", 0) or type(tensor) is not torch.Tensor or tensor.data_ptr() != memory.ctypes.data:
        raise NoCudaHereError(f"a tensor that was lent to torch came back on {tensor.device}")
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    set_size(storage, 8)
    shrunk = storage.nbytes()
    set_size(storage, size)
    if (size, shrunk, storage.nbytes()) != (24, 8, 24):
        raise NoCudaHereError(f"the size of a storage was {size}, then {shrunk}, then {storage.nbytes()}: wanted 24, 8, 24")
    if freed():
        raise NoCudaHereError("a tensor that lives was reported as freed")
    del tensor, storage
    if freed() != [slot]:
        raise NoCudaHereError("a tensor that is gone was not reported as freed")


CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def on_cpu(operator: Any, args: Any, kwargs: Any) -> Any:
    """Runs the CPU's kernel of an operator, whatever the tensors say: for views and what changes no byte."""
    return operator.redispatch(CPU, *args, **kwargs)


class BelowModes:
    """A context for kernels of the device: no mode or subclass sees an operator, nothing is differentiated or in inference mode."""

    def __enter__(self) -> None:
        self._gradients = torch.is_grad_enabled()
        guards: list[Any] = [torch._C._DisableTorchDispatch(), torch._C._InferenceMode(False)]
        self._guards = guards
        for guard in guards:
            guard.__enter__()
        torch._C._set_grad_enabled(False)

    def __exit__(self, *error: Any) -> None:
        for guard in reversed(self._guards):
            guard.__exit__(*error)
        torch._C._set_grad_enabled(self._gradients)


def view_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A uint8 tensor [bytes] seen as another dtype."""
    return on_cpu(torch.ops.aten.view.dtype, (tensor, dtype), {})  # type: ignore[no-any-return]


def as_strided(tensor: torch.Tensor, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    """A tensor's storage in another shape."""
    return on_cpu(torch.ops.aten.as_strided.default, (tensor, shape, stride), {})  # type: ignore[no-any-return]


def leave_uncompiled(*packages: str) -> None:
    """Torch's compiler leaves alone all functions of these packages that are loaded."""
    compiler: Any = torch._C._dynamo.eval_frame
    never = compiler._FrameExecStrategy(compiler._FrameAction.SKIP, compiler._FrameAction.SKIP)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages:
            for code in _codes(vars(module).values()):
                compiler.set_code_exec_strategy(code, never)


def _codes(things: Iterable[Any]) -> Iterator[CodeType]:
    for thing in things:
        thing = getattr(thing, "fget", thing)
        if isinstance(thing, type) and str(thing.__module__).startswith("kvstage"):
            yield from _codes(vars(thing).values())
        code = thing if isinstance(thing, CodeType) else getattr(thing, "__code__", None)
        if isinstance(code, CodeType):
            yield code
            yield from _codes(code.co_consts)
