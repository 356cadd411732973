"""Recorded staging calls, made again without the model: by any scheme, on any device, verified each time."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from kvstage import Device, Stager, Stats
from kvstage_model.language.buffers import Memory

from .clock import Clock, clocked
from .pools import BLOCK_SIZE, FILL, raw
from .staged_cache import Call, PagedRows, bf16, stage

FLAT = "flat copy"
"""Instead of a scheme: the bytes of each step as one contiguous copy and one wait. Nothing moves them much faster."""
STREAM = "flat"


class WrongReplayError(AssertionError):
    """A replay left other bytes in the pools, or at the host, than the forward pass did."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """One step of a forward pass: its staging calls, and what everything else took, once for each pass, in seconds."""

    history: int
    tokens: int
    calls: tuple[Call, ...]
    rest: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The steps of a leg, in order. The pools hold `before` rows of each of `rows` ([capacity, width]) when it begins.

    `unstaged` is the seconds of the same steps of the pass that staged nothing.
    """

    name: str
    steps: tuple[Recorded, ...]
    before: int
    rows: tuple[torch.Tensor, ...]
    unstaged: float

    @property
    def after(self) -> int:
        """Rows of each cache when it has ended."""
        return self.steps[-1].history + self.steps[-1].tokens


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One replay: for each step the seconds on the host, and how many of them it waited; what was asked of the device."""

    seconds: tuple[float, ...]
    waiting: tuple[float, ...]
    stats: Stats


class Replay:
    """The pools of one sequence on one device, and the rows at the host that writes take."""

    def __init__(self, device: Device[Any, Any], widths: list[int], capacity: int) -> None:
        self._clock = Clock()
        self._device = clocked(device, self._clock)
        self._caches = [PagedRows(number, capacity, width, device) for number, width in enumerate(widths)]
        self._sources = [bf16(device, Memory.PINNED, capacity, width) for width in widths]
        self._stagers: dict[str, Stager] = {}  # kept, with their staging memory, as an engine keeps its own
        size = capacity * sum(widths)
        self._flat = [bf16(device, memory, 1, size) for memory in (Memory.DEVICE, Memory.PINNED)]

    def run(self, recording: Recording, scheme: str) -> Sample:
        """All calls of a recording, step by step. Raises WrongReplayError unless every byte is in its place behind it."""
        if scheme == FLAT:
            return self._copies(recording)
        self._prepare(recording)
        seconds, waiting, stats = [], [], Stats()
        if scheme not in self._stagers:
            self._stagers[scheme] = Stager(self._device, scheme=scheme)
        for step in recording.steps:
            waited, began = self._clock.seconds, perf_counter()
            for call in step.calls:
                cache = self._caches[call.cache]
                host = cache.host if call.direction == "read" else self._sources[call.cache]
                transfer = stage(self._stagers[scheme], call, cache, host)
                transfer.wait()
                stats += transfer.stats
            seconds.append(perf_counter() - began)
            waiting.append(self._clock.seconds - waited)
        self._verify(recording, scheme)
        return Sample(tuple(seconds), tuple(waiting), stats)

    def bytes(self, step: Recorded) -> int:
        """Bytes of the rows that the calls of a step move."""
        return sum((call.stop - call.start) * self._caches[call.cache].pool.row_bytes for call in step.calls)

    def _copies(self, recording: Recording) -> Sample:
        seconds, waiting, total = [], [], 0
        for step in recording.steps:
            size = self.bytes(step)
            source, target = (
                self._device.view(memory, raw(flat)[:size].view(1, 1, size))[0, 0:1]
                for memory, flat in zip((Memory.DEVICE, Memory.PINNED), self._flat, strict=True)
            )
            waited, began = self._clock.seconds, perf_counter()
            self._device.copy(STREAM, source, target)
            self._device.synchronize(STREAM)
            seconds.append(perf_counter() - began)
            waiting.append(self._clock.seconds - waited)
            total += size
        return Sample(tuple(seconds), tuple(waiting), Stats(len(seconds), len(seconds), total))

    def _prepare(self, recording: Recording) -> None:
        """Pools that hold the history before the first step, and nothing else that a leg before this one has left."""
        for cache, source, rows in zip(self._caches, self._sources, recording.rows, strict=True):
            source[: len(rows)] = rows
            raw(cache.host).fill_(FILL)
            cache.pool.tensor.copy_(_pages(cache, rows[: recording.before]))

    def _verify(self, recording: Recording, scheme: str) -> None:
        """The pools hold all rows and nothing else; the host the history of the last step that read one."""
        read = max(step.history for step in recording.steps)
        for cache, rows in zip(self._caches, recording.rows, strict=True):
            at_host = torch.full_like(cache.host, 0)
            raw(at_host).fill_(FILL)
            at_host[:read] = rows[:read]
            _check(f"{recording.name}, {scheme}, {cache.pool}", cache.pool.tensor.cpu(), _pages(cache, rows[: recording.after]))
            _check(f"{recording.name}, {scheme}, host rows of {cache.pool}", cache.host, at_host)


def _pages(cache: PagedRows, rows: torch.Tensor) -> torch.Tensor:
    """The pool that holds these rows, by plain indexing, and FILL in all others."""
    pages = torch.empty(cache.pool.tensor.shape, dtype=rows.dtype)
    raw(pages).fill_(FILL)
    whole, rest = divmod(len(rows), BLOCK_SIZE)
    pages[cache.table[:whole]] = rows[: whole * BLOCK_SIZE].view(whole, BLOCK_SIZE, rows.shape[1])
    if rest:
        pages[cache.table[whole], :rest] = rows[whole * BLOCK_SIZE :]
    return pages


def _check(what: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    if not torch.equal(raw(found), raw(expected)):
        wrong = int((raw(found) != raw(expected)).sum())
        raise WrongReplayError(f"{what}: {wrong} of {len(raw(expected))} bytes are not the forward pass's: its time is not told")
