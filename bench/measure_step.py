"""The whole measurement of `python -m bench step`: verified forward passes, then replays on every device."""

import gc
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import torch
import transformers

from kvstage import Device, ThreadDevice

from .glm import INDEXER_WIDTH, LATENT_WIDTH, SEED
from .pools import BLOCK_SIZE
from .record import record
from .replay import Recording, Replay
from .report import extrapolation, growth, legs, orders, steps
from .rounds import ROUNDS, Leg, measure
from .sizes import Sizes, build_model, side_by_side

VERSION = 1
"""Of the report."""
DIVISORS = (1, 4, 16)
"""A prefill goes in one piece, and in chunks of a quarter and of a sixteenth of its tokens."""
LONGEST, LONG = 5.0, 0.5
"""Waits of a leg for each row of a cache, above which it runs once: on the first device, and on the others, to save time."""
DECODES = 2
"""Tokens that are decoded behind the prefill in quarters; the first of them has exactly the prefill for its history."""


def measure_step(
    sizes: Sizes, tokens: int, devices: Mapping[str, Callable[[], Device[Any, Any]] | str], wait_policy: str, rounds: int = ROUNDS
) -> dict[str, Any]:
    """The report: JSON as it is. `tokens` must be a multiple of 16. `wait_policy` says how OpenMP's threads wait.

    Raises DifferentError or WrongReplayError if a scheme changed a byte, before its time counts.
    """
    transformers.utils.logging.set_verbosity_error()  # it says once a layer that it has no quick kernels for a CPU
    machine = _machine(wait_policy)  # its load, before this process adds to it
    model = build_model(sizes)
    ids = torch.randperm(sizes.vocab, generator=torch.Generator().manual_seed(SEED))[:tokens]
    with ThreadDevice() as device:
        verified = [record(model, ids, tokens // each, DECODES if each == DIVISORS[1] else 0, device) for each in DIVISORS]
    del model
    recordings = sorted((each for one in verified for each in one.recordings), key=lambda each: each.before)
    measured: dict[str, list[Leg]] = {}
    for name, make in devices.items():
        if not isinstance(make, str):
            once = (LONG if measured else LONGEST) * sizes.row_caches * tokens
            measured[name] = _measured(make, recordings, sizes, tokens + DECODES, rounds, once)
    first = next(iter(measured.values()))
    return {
        "version": VERSION,
        "benchmark": "step",
        "input": {
            "tokens": tokens,
            "caches": sizes.row_caches,
            "block_size": BLOCK_SIZE,
            "bytes": tokens * sizes.token_bytes,
        },
        "machine": machine,
        "model": side_by_side(sizes),
        "rounds": rounds,
        "missing": {name: why for name, why in devices.items() if isinstance(why, str)},
        "verified": {"passes": sum(each.passes for each in verified), "bytes": sum(each.bytes for each in verified)},
        "steps": steps(recordings),
        "growth": growth(max(recordings, key=lambda each: len(each.steps))),
        "devices": [{"device": name, "legs": legs(found), "orders": orders(found)} for name, found in measured.items()],
        "extrapolation": extrapolation(first, sizes),
    }


def _measured(
    make: Callable[[], Device[Any, Any]], recordings: list[Recording], sizes: Sizes, capacity: int, rounds: int, once: float
) -> list[Leg]:
    with closing(make()) as device:
        replay = Replay(device, [LATENT_WIDTH, INDEXER_WIDTH] * sizes.dsa_layers, capacity)
        with collected():
            return measure(replay, recordings, rounds=rounds, once=once)


@contextmanager
def collected() -> Iterator[None]:
    """Sets what exists aside from Python's collector: looking through torch's objects takes it 0.1 s, in whatever leg it is."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _machine(wait_policy: str) -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "torch_threads": torch.get_num_threads(),
        "wait_policy": wait_policy,
    }
