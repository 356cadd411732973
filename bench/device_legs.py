"""The caches of a prefill on a device of any kind, read and written by every scheme of the library: verified, then timed."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kvstage import DeviceError, PagedPool, Stager, Stats
from kvstage.costs import Costs
from kvstage.selection.measurement import costs_of, measured
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.counts import Counts
from kvstage_model.schemes.registry import LIBRARY

from .pools import BLOCK_SIZE, FILL, SPARE

ROWS = 8192
"""Rows of each cache."""
WIDTHS = (512, 257)
"""Elements of a latent row and of an indexer row, bf16."""
LAYERS = 11
CACHES = LAYERS * len(WIDTHS)
ROUNDS = 5
FEW = 20_000
"""A leg with more waits is timed once: noise averages out in so many."""
FLAT, BY_TORCH = "one flat copy", "flat copy, by torch"
"""The device's own, of each cache; and torch's `copy_`, where the host addresses the pools. A memcpy of megabytes may pass
the caches of the CPU by, which neither torch nor any copy of single blocks does."""
TABLE_SEED = 1000
"""Of the table, which all caches of a sequence have in common."""


class WrongBytesError(AssertionError):
    """A leg moved other bytes than the pool, or the rows, hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """A pool on the device, its table, the rows that it holds in the order of the sequence, and pinned memory for as many."""

    pool: torch.Tensor
    paged: PagedPool
    table: list[int]
    rows: torch.Tensor
    out: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """One way to move all caches: `run` does it; `verify` does it once and raises WrongBytesError for a wrong byte."""

    name: str
    run: Callable[[], Stats]
    verify: Callable[[], None]


def measure(device: Any, rows: int, schemes: Sequence[str] = tuple(LIBRARY), rounds: int = ROUNDS) -> dict[str, Any]:
    """Those schemes that the device can run, in both directions, and "auto", beside flat copies of the same bytes.

    Raises WrongBytesError before anything is timed.
    """
    caches = [_cache(device, rows, width, seed) for seed, width in enumerate(WIDTHS * LAYERS)]
    costs = measured(device)
    as_a_user_gets_it = Stager(device, costs=costs_of(device))
    stagers = {name: Stager(device, scheme=name) for name in schemes} | {"auto": as_a_user_gets_it}
    legs = [_flat(device, caches)]
    if caches[0].pool.device.type == "cpu":
        legs.append(_flat_by_torch(caches))
    for name, stager in stagers.items():
        try:
            _read(stager, caches[:1])
        except DeviceError:  # kernels that don't reach the host's memory
            continue
        legs += [
            _leg(f"{name} read", stager, caches, _read, _check_read),
            _leg(f"{name} write", stager, caches, _write, _check_write),
        ]
    for leg in legs:
        leg.verify()
    seconds: dict[str, list[float]] = {leg.name: [] for leg in legs}
    stats: dict[str, Stats] = {}
    for turn in range(rounds):
        for leg in legs:
            if turn == 0 or stats[leg.name].waits <= FEW:
                began = time.perf_counter()
                stats[leg.name] = leg.run()
                seconds[leg.name].append(time.perf_counter() - began)
    flat = statistics.median(seconds[FLAT])
    choice = stagers["auto"].choice(caches[0].paged, caches[0].table, 0, rows)
    assert choice is not None, "auto says what it picks"
    values = {name: getattr(costs, name) for name in ("wait", "copy", "launch", "bandwidth", "host_bandwidth")}
    return {
        "rows": rows,
        "bytes": sum(cache.rows.nbytes for cache in caches),
        "costs": {"source": costs.source, "values": values, "kernels": sorted(memory.value for memory in costs.kernels)},
        "picked": choice.why,
        "legs": [_row(leg.name, seconds[leg.name], stats[leg.name], flat, costs) for leg in legs],
    }


def legs_table(report: dict[str, Any]) -> Iterator[str]:
    """The report for people, line by line."""
    costs = ", ".join(f"{key} {value:.3g}" for key, value in report["costs"]["values"].items())
    yield f"{CACHES} caches of {report['rows']} rows, {report['bytes']} bytes; every byte of every leg was compared"
    yield f"costs {report['costs']['source']}: {costs}"
    yield f"auto picked {report['picked']}"
    yield ""
    yield f"{'leg':22} {'copies':>8} {'kernels':>8} {'waits':>8} {'milliseconds':>13} {'expected':>9} {'to flat copy':>13}"
    for leg in report["legs"]:
        counts = f"{leg['copies']:8} {leg['launches']:8} {leg['waits']:8}"
        yield f"{leg['leg']:22} {counts} {leg['milliseconds']:13.2f} {leg['expected_milliseconds']:9.2f} {leg['to_flat']:13.2f}"


def _row(name: str, seconds: list[float], stats: Stats, flat: float, costs: Costs) -> dict[str, Any]:
    asked = Counts(stats.copies, stats.waits, stats.launches, moved=stats.bytes, taken=0)
    median = statistics.median(seconds)
    return {
        "leg": name,
        "copies": stats.copies,
        "launches": stats.launches,
        "waits": stats.waits,
        "moved_bytes": stats.bytes,
        "milliseconds": median * 1e3,
        "rounds": [each * 1e3 for each in seconds],
        "expected_milliseconds": costs.seconds(asked, 1) * 1e3,
        "to_flat": median / flat,
    }


def _cache(device: Any, rows: int, width: int, seed: int) -> Cache:
    blocks = -(-rows // BLOCK_SIZE)
    generator, order = (torch.Generator().manual_seed(number) for number in (seed, TABLE_SEED))
    host = torch.randint(0, 256, (blocks + SPARE, BLOCK_SIZE, width * 2), dtype=torch.uint8, generator=generator)
    table = torch.randperm(blocks + SPARE, generator=order)[:blocks].tolist()
    held = host[table].flatten(0, 1)[:rows]
    out, given = (_pinned(device, rows, width) for _ in range(2))
    given.view(torch.uint8).copy_(held)
    pool = device.allocate(Memory.DEVICE, host.numel()).view(host.shape)
    pool.copy_(host)
    tensor = pool.view(torch.bfloat16)
    return Cache(tensor, PagedPool(tensor), table, given, out)


def _pinned(device: Any, rows: int, width: int) -> torch.Tensor:
    tensor: torch.Tensor = device.allocate(Memory.PINNED, rows * width * 2)
    return tensor.view(torch.bfloat16).view(rows, width)


def _flat(device: Any, caches: list[Cache]) -> Leg:
    """As many bytes of each pool as its rows have, in one copy each, and one wait."""
    ends = []
    for cache in caches:
        pool = device.view(Memory.DEVICE, cache.pool.view(-1).view(torch.uint8)[: cache.rows.nbytes].view(1, 1, -1))
        ends.append((pool[0, 0:1], device.view(Memory.PINNED, cache.out.view(-1).view(torch.uint8).view(1, 1, -1))[0, 0:1]))

    def run() -> Stats:
        for source, target in ends:
            device.copy("flat", source, target)
        device.synchronize("flat")
        return Stats(copies=len(ends), waits=1, bytes=sum(cache.rows.nbytes for cache in caches))

    return Leg(FLAT, run, lambda: _check_flat(FLAT, run, caches))


def _flat_by_torch(caches: list[Cache]) -> Leg:
    ends = [(cache.pool.view(-1)[: cache.out.numel()], cache.out.view(-1)) for cache in caches]

    def run() -> Stats:
        for source, target in ends:
            target.copy_(source)
        return Stats(copies=len(ends), bytes=sum(cache.rows.nbytes for cache in caches))

    return Leg(BY_TORCH, run, lambda: _check_flat(BY_TORCH, run, caches))


def _leg(name: str, stager: Stager, caches: list[Cache], move: Callable[..., Stats], check: Callable[..., None]) -> Leg:
    def verify() -> None:
        check(name, lambda: move(stager, caches), caches)

    return Leg(name, lambda: move(stager, caches), verify)


def _read(stager: Stager, caches: list[Cache]) -> Stats:
    with stager.batch() as batch:
        for cache in caches:
            batch.read(cache.paged, cache.table, 0, len(cache.rows), out=cache.out)
    batch.wait()
    return batch.stats


def _write(stager: Stager, caches: list[Cache]) -> Stats:
    with stager.batch() as batch:
        for cache in caches:
            batch.write(cache.paged, cache.table, 0, cache.rows)
    batch.wait()
    return batch.stats


def _check_flat(name: str, run: Callable[[], Stats], caches: list[Cache]) -> None:
    for cache in caches:
        cache.out.view(torch.uint8).fill_(FILL)
    run()
    for number, cache in enumerate(caches):
        _same(name, number, cache.out, cache.pool.view(-1)[: cache.out.numel()].cpu().view(cache.out.shape))


def _check_read(name: str, run: Callable[[], Stats], caches: list[Cache]) -> None:
    for cache in caches:
        cache.out.view(torch.uint8).fill_(FILL)
    run()
    for number, cache in enumerate(caches):
        _same(name, number, cache.out, cache.rows)


def _check_write(name: str, run: Callable[[], Stats], caches: list[Cache]) -> None:
    """Into a pool whose rows were wiped: it must be what it was, spare blocks too."""
    before = [cache.pool.to("cpu", copy=True) for cache in caches]
    for cache in caches:
        wiped = torch.tensor(cache.table, device=cache.pool.device)
        cache.pool.view(torch.uint8)[wiped] = FILL
    run()
    for number, (cache, pool) in enumerate(zip(caches, before, strict=True)):
        blocks = [block for block in range(len(pool)) if block != cache.table[-1]]  # the last one may be used in part
        _same(name, number, cache.pool.cpu()[blocks], pool[blocks])
        last = len(cache.rows) - (len(cache.table) - 1) * BLOCK_SIZE
        _same(name, number, cache.pool[cache.table[-1], :last].cpu(), pool[cache.table[-1], :last])
        cache.pool.copy_(pool)


def _same(name: str, number: int, found: torch.Tensor, expected: torch.Tensor) -> None:
    one, other = (tensor.contiguous().view(-1).view(torch.uint8) for tensor in (found, expected))
    if not len(other) or not torch.equal(one, other):
        raise WrongBytesError(f"{name}: {int((one != other).sum())} of {len(other)} bytes of cache {number} are wrong")
