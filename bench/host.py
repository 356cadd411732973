"""`python -m bench host`: the caches of a prefill in memory that the CPU addresses, by `HostDevice`, beside flat copies.

Exit 0: measured. 1: a leg moved wrong bytes, and nothing was timed. 2: a usage error.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from kvstage import HostDevice

from .device_legs import ROWS, WrongBytesError, legs_table, measure
from .glm import one_thread

VERSION = 1
"""Of the JSON."""
SCHEMES = ("per_block", "direct", "gather_host")
ROUNDS = 15


def main(argv: list[str]) -> int:
    """Print the table, and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench host", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same numbers there, as JSON")
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help=f"rows of each cache (default {ROWS})")
    options = parser.parse_args(argv)
    if options.rows < 1:
        parser.error(f"--rows is {options.rows}: a prefill has at least one token")
    load = os.getloadavg()[0]
    try:
        with one_thread(), HostDevice() as device:
            report = measure(device, options.rows, SCHEMES, ROUNDS)
    except WrongBytesError as error:
        print(f"python -m bench host: {error}", file=sys.stderr)
        return 1
    report |= {"version": VERSION, "benchmark": "host", "cpus": os.cpu_count(), "load_average": load}
    print(f"HostDevice, {os.cpu_count()} CPUs, load {load:.1f} before, one thread, medians of {ROUNDS} rounds")
    print("\n".join(legs_table(report)))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0
