"""`python -m bench prefill`: stage the caches of a prefill by row and by block, through the library and by hand."""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kvstage import ThreadDevice

from .glm import TOKENS, Cache, GeometryError, forward_caches, one_thread
from .interpreter import microseconds
from .legs import SCHEMES, STREAM, Leg, WrongBytesError, legs
from .pools import BLOCK_SIZE, raw

VERSION = 1
"""Of the JSON."""
ROUNDS = {"one copy": 3, "per_row": 2, "per_block": 3}
"""How often each scheme is timed. Two by row: they take most of the run."""
ROUND_TRIPS = 2000
BY = ("library", "by hand")


def main(argv: list[str]) -> int:
    """Print the table. Exit 1 if a leg moved wrong bytes, 2 on a usage error or without transformers."""
    parser = argparse.ArgumentParser(prog="python -m bench prefill", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same numbers there, as JSON")
    fewer = f"rows of each cache (default {TOKENS}); fewer for a quick look or a test"
    parser.add_argument("--tokens", type=int, default=TOKENS, metavar="N", help=fewer)
    options = parser.parse_args(argv)
    if options.tokens < 1:
        parser.error(f"--tokens is {options.tokens}: a prefill has at least one token")
    if options.json and (options.json.is_dir() or not options.json.parent.is_dir()):
        parser.error(f"--json {options.json}: no file can be written there; name one in a folder that exists")
    try:
        with one_thread():
            machine = _machine()  # its load, before this process adds to it
            report = measure(forward_caches(options.tokens), machine)
    except ModuleNotFoundError as error:
        parser.error(f"{error}: the input comes from transformers; pip install 'kvstage[transformers]'")
    except (WrongBytesError, GeometryError) as error:
        print(f"python -m bench prefill: {error}", file=sys.stderr)
        return 1
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def measure(caches: tuple[Cache, ...], machine: dict[str, Any]) -> dict[str, Any]:
    """Verify each leg, then time all of them in interleaved rounds. Raises WrongBytesError before any timing."""
    with ThreadDevice() as device:
        found = legs(device, caches)
        counts = [_verified(device, leg) for leg in found]
        seconds: list[list[float]] = [[] for _ in found]
        for turn in range(max(ROUNDS.values())):
            for leg, times in zip(found, seconds, strict=True):
                if turn < ROUNDS[leg.scheme]:
                    if sys.stderr.isatty():
                        print(f"\rround {turn + 1}: {leg.name:30}", end="", file=sys.stderr, flush=True)
                    times.append(_seconds(leg.run))
        if sys.stderr.isatty():
            print(file=sys.stderr)
        wait = _wait_seconds(device)
    milliseconds = [statistics.median(times) * 1e3 for times in seconds]
    rows = [
        {
            "leg": leg.name,
            "by": leg.by,
            "scheme": leg.scheme,
            "direction": leg.direction,
            "copies": copies,
            "waits": waits,
            "milliseconds": time_,
            "rounds": [each * 1e3 for each in times],
            "to_flat": time_ / milliseconds[0],
            "verified_bytes": verified,
        }
        for leg, (copies, waits, verified), time_, times in zip(found, counts, milliseconds, seconds, strict=True)
    ]
    return {
        "version": VERSION,
        "benchmark": "prefill",
        "input": _input(caches),
        "machine": machine,
        "legs": rows,
        "wait_microseconds": wait * 1e6,
        "row_to_block": _row_to_block(rows),
        "library_to_hand": _library_to_hand(rows),
        "operation_microseconds": microseconds(),
    }


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    data, machine = report["input"], report["machine"]
    lines = [
        f"GLM-5.3-Flash prefill: {data['tokens']} tokens, {data['caches']} caches, {data['bytes']} bytes, "
        f"blocks of {data['block_size']} rows",
        f"{machine['device']}, {machine['cpus']} CPUs ({machine['architecture']}), load {machine['load_average']:.1f} before, "
        f"torch {machine['torch']}, torch threads: {machine['torch_threads']}",
        f"medians of {max(ROUNDS.values())} rounds, {ROUNDS['per_row']} by row; "
        "all bytes of every leg were compared with the forward pass's before the first",
        "",
        f"{'leg':26} {'copies':>8} {'waits':>8} {'milliseconds':>13} {'to flat copy':>13}",
    ]
    for row in report["legs"]:
        times = f"{row['milliseconds']:13.1f} {row['to_flat']:13.1f}"
        lines.append(f"{row['leg']:26} {row['copies']:8} {row['waits']:8} {times}")
    ratios, hand, idle = (
        ", ".join(f"{value:.{digits}f} ({name})" for name, value in report[key].items())
        for key, digits in (("row_to_block", 1), ("library_to_hand", 2), ("operation_microseconds", 1))
    )
    wait = f"one wait, with a copy of one byte: {report['wait_microseconds']:.1f} us"
    own = f"one operation of the library, on a device that does nothing: {idle} us"
    return "\n".join([*lines, "", f"per_row / per_block: {ratios}", f"library / by hand: {hand}", wait, own])


def _verified(device: ThreadDevice, leg: Leg) -> tuple[int, int, int]:
    """The copies and waits of one run whose bytes were right, as the device counted them, and the bytes compared."""
    copies, waits = device.copies, device.waits
    verified = leg.verify()
    return device.copies - copies, device.waits - waits, verified


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _wait_seconds(device: ThreadDevice) -> float:
    """The median round trip: a copy of one byte, and the wait for it."""
    source, target = (torch.zeros(1, 1, dtype=torch.uint8).numpy() for _ in range(2))

    def trip() -> None:
        device.copy(STREAM, source, target)
        device.synchronize(STREAM)

    return statistics.median(_seconds(trip) for _ in range(ROUND_TRIPS))


def _row_to_block(rows: list[dict[str, Any]]) -> dict[str, float]:
    row, block = ({f"{r['direction']}, {r['by']}": r["milliseconds"] for r in rows if r["scheme"] == scheme} for scheme in SCHEMES)
    return {name: row[name] / block[name] for name in row}


def _library_to_hand(rows: list[dict[str, Any]]) -> dict[str, float]:
    library, hand = ({f"{r['scheme']} {r['direction']}": r["milliseconds"] for r in rows if r["by"] == by} for by in BY)
    return {name: library[name] / hand[name] for name in library}


def _input(caches: tuple[Cache, ...]) -> dict[str, int]:
    total = sum(len(raw(cache.rows)) for cache in caches)
    return {"tokens": len(caches[0].rows), "caches": len(caches), "block_size": BLOCK_SIZE, "bytes": total}


def _machine() -> dict[str, Any]:
    return {
        "device": "ThreadDevice",
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
    }
