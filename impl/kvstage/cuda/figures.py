"""The functions of torch.cuda, by name: streams, the device and its properties, memory, random numbers."""

import types
from collections.abc import Callable
from typing import Any

from . import generators, streams
from .runs import running
from .simulation import allocator

TOTAL = 24 << 30
"""Bytes of memory that the device says it has."""

PROPERTIES = types.SimpleNamespace(
    name="kvstage simulated device",
    major=9,
    minor=0,
    total_memory=TOTAL,
    multi_processor_count=132,
    uuid="0",
    warp_size=32,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    L2_cache_size=1 << 25,
    is_integrated=False,
    is_multi_gpu_board=False,
    gcnArchName="",
    pci_bus_id=0,
    pci_device_id=0,
    pci_domain_id=0,
)


def stream_functions() -> dict[str, Any]:
    """Those that speak of streams, by name."""
    return {
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "stream": streams.StreamContext,
        "StreamContext": streams.StreamContext,
        "synchronize": streams.synchronize,
    }


def device_functions() -> dict[str, Any]:
    """Those that speak of the device, by name."""
    return {
        "is_available": lambda: True,
        "device_count": one(),
        "current_device": zero(),
        "set_device": nothing(),
        "is_initialized": lambda: True,
        "init": nothing(),
        "get_device_properties": lambda device=None: PROPERTIES,
        "get_device_name": lambda device=None: PROPERTIES.name,
        "get_device_capability": lambda device=None: (PROPERTIES.major, PROPERTIES.minor),
        "is_bf16_supported": lambda including_emulation=True: True,
        "_exchange_device": zero(),
        "_maybe_exchange_device": zero(),
        "ipc_collect": nothing(),
        "get_sync_debug_mode": lambda: running().sync_debug_mode,
        "set_sync_debug_mode": _set_sync_debug_mode,
        "_sleep": nothing(),
        "_lazy_call": lambda act, **_: act(),
    }


def _set_sync_debug_mode(debug_mode: int | str) -> None:
    names = {"default": 0, "warn": 1, "error": 2}
    if debug_mode not in names and debug_mode not in names.values():
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    running().sync_debug_mode = names[debug_mode] if isinstance(debug_mode, str) else debug_mode


def memory_functions() -> dict[str, Any]:
    """Those that speak of memory, by name."""

    def used(device: Any = None) -> int:
        allocator.collect()
        return allocator.allocated

    def peak(device: Any = None) -> int:
        return max(allocator.peak, used())

    def forget(device: Any = None) -> None:
        allocator.peak = used()

    figures = {"memory_allocated": used, "max_memory_allocated": peak}
    figures |= {"memory_reserved": again(used), "max_memory_reserved": again(peak)}
    stats = {
        "reset_peak_memory_stats": forget,
        "reset_max_memory_allocated": again(forget),
        "empty_cache": nothing(),
        "mem_get_info": lambda device=None: (TOTAL - used(), TOTAL),
        "memory_stats": lambda device=None: {"allocated_bytes.all.current": used(), "allocated_bytes.all.peak": peak()},
    }
    return figures | stats


def random_functions() -> dict[str, Any]:
    """Those that speak of random numbers, by name."""
    return {
        "manual_seed": generators.manual_seed,
        "manual_seed_all": again(generators.manual_seed),
        "seed": lambda: generators.default.seed(),
        "initial_seed": lambda: generators.default.initial_seed(),
        "get_rng_state": generators.get_rng_state,
        "set_rng_state": generators.set_rng_state,
        "get_rng_state_all": lambda: [generators.get_rng_state()],
        "set_rng_state_all": lambda states: generators.set_rng_state(states[0]),
        "default_generators": (generators.default,),
    }


def one() -> Callable[..., int]:
    """A new function each time: torch's compiler knows functions by their identity."""
    return lambda *_, **__: 1


def zero() -> Callable[..., int]:
    """A new function that gives 0."""
    return lambda *_, **__: 0


def nothing() -> Callable[..., None]:
    """A new function that does nothing."""
    return lambda *_, **__: None


def again(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as another function."""
    return lambda *args, **kwargs: function(*args, **kwargs)
