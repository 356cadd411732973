"""Forward passes in steps, staged by a scheme or not at all, and the comparison of what they computed and cached."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from transformers import Cache, DynamicCache

from kvstage import Device, Stager

from .pools import raw
from .staged_cache import Call, Log, StagedRows, staged_cache, staged_rows


class DifferentError(AssertionError):
    """A staged forward pass computed or cached other bytes than the one without staging."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One call of the model: `tokens` new ones behind `history`.

    `seconds` is the whole call, of which the host spent `staging` in `calls`. `logits` [vocab] bf16 are of the last token.
    """

    history: int
    tokens: int
    seconds: float
    staging: float
    calls: tuple[Call, ...]
    logits: torch.Tensor

    @property
    def rest(self) -> float:
        """Seconds of everything but staging."""
        return self.seconds - self.staging


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """A prefill in steps, and the decode steps behind it. `rows` are the cached ones, [tokens, width] for each cache."""

    scheme: str
    steps: tuple[Step, ...]
    rows: tuple[torch.Tensor, ...]


def forward(model: Any, ids: torch.Tensor, chunk: int, decodes: int, device: Device[Any, Any], scheme: str) -> Pass:
    """A prefill of `ids` [tokens] in chunks, then so many decode steps (greedy), with caches staged by a scheme.

    The scheme "none" is transformers' own DynamicCache, which stages nothing. Shows its progress on a terminal.
    """
    capacity, log = len(ids) + decodes, Log()
    with torch.inference_mode(), Stager(device, scheme="direct" if scheme == "none" else scheme) as stager:
        cache = DynamicCache(config=model.config) if scheme == "none" else staged_cache(model.config, stager, device, capacity, log)
        steps: list[Step] = []
        for start in range(0, len(ids), chunk):
            progress(f"{scheme}, chunks of {chunk}: {start} of {len(ids)} tokens")
            steps.append(_step(model, ids[start : start + chunk], start, cache, log))
        for history in range(len(ids), capacity):
            progress(f"{scheme}: decodes token {history}")
            steps.append(_step(model, steps[-1].logits.argmax()[None], history, cache, log))
        progress("")
        return Pass(scheme, tuple(steps), tuple(_cached(cache, capacity)))


def compare(found: Pass, expected: Pass) -> int:
    """The bytes compared: the logits of every step, hence its token, and all cached rows. Raises DifferentError."""
    compared = 0
    for step, other in zip(found.steps, expected.steps, strict=True):
        where = f"logits behind {step.history} + {step.tokens} tokens"
        compared += _same(found.scheme, where, step.logits, other.logits)
    for number, (rows, others) in enumerate(zip(found.rows, expected.rows, strict=True)):
        compared += _same(found.scheme, f"cache {number}", rows, others)
    return compared


def _same(scheme: str, what: str, found: torch.Tensor, expected: torch.Tensor) -> int:
    if found.shape != expected.shape or not found.numel():
        raise DifferentError(f"{scheme}, {what}: shape {list(found.shape)}, expected {list(expected.shape)}, and not empty")
    wrong = int((raw(found) != raw(expected)).sum())
    if wrong:
        raise DifferentError(f"{scheme}, {what}: {wrong} of {len(raw(expected))} bytes differ from the pass without staging")
    return len(raw(found))


def _step(model: Any, ids: torch.Tensor, history: int, cache: Cache, log: Log) -> Step:
    log.calls, log.seconds = [], 0.0
    # The argument was called past_key_values before transformers 5.24, and the old name warns since.
    name = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
    began = perf_counter()
    output = model(input_ids=ids[None], use_cache=True, logits_to_keep=1, **{name: cache})
    seconds = perf_counter() - began
    return Step(history, len(ids), seconds, log.seconds, tuple(log.calls), output.logits[0, -1].clone())


def _cached(cache: Cache, length: int) -> Iterator[torch.Tensor]:
    """The rows of every cache, contiguous: from the pools by plain indexing, or as DynamicCache holds them."""
    staged: list[StagedRows] = list(staged_rows(cache))
    for each in staged:
        yield each.rows.paged()[: each.length].contiguous()
    for layer in [] if staged else cache.layers:
        if hasattr(layer, "indexer_keys"):
            yield layer.keys[0, 0, :length].contiguous()
            yield layer.indexer_keys[0, :length].contiguous()


def progress(what: str) -> None:
    """One line that rewrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)
