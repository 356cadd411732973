"""`python -m bench schemes DEVICE`: the caches of a prefill by the schemes that suit a device, beside flat copies.

Exit 0: measured. 1: a leg moved wrong bytes, and nothing was timed. 2: a usage error, or the device is not to be had here.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from kvstage import HostDevice, OpenCLDevice, OpenCLMissingError, ThreadDevice

from .device_legs import ROWS, WrongBytesError, legs_table, measure
from .glm import one_thread

VERSION = 2
"""Of the JSON."""
KERNELS_AND_COPIES = ("per_block", "direct", "gather_pinned", "gather_copy", "gather")
DEVICES: dict[str, tuple[type[HostDevice | OpenCLDevice | ThreadDevice], tuple[str, ...]]] = {
    "HostDevice": (HostDevice, ("per_block", "direct", "gather_host")),
    "OpenCLDevice": (OpenCLDevice, KERNELS_AND_COPIES),
    "ThreadDevice": (ThreadDevice, KERNELS_AND_COPIES),
}
"""The kind of each device, and the schemes that suit it; an accelerator has `device_check`."""
ROUNDS = 15


def main(argv: list[str]) -> int:
    """Print the table, and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench schemes", description=__doc__)
    parser.add_argument("device", choices=DEVICES, metavar="DEVICE", help=", ".join(DEVICES))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same numbers there, as JSON")
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help=f"rows of each cache (default {ROWS})")
    options = parser.parse_args(argv)
    if options.rows < 1:
        parser.error(f"--rows is {options.rows}: a prefill has at least one token")
    load, (kind, schemes) = os.getloadavg()[0], DEVICES[options.device]
    try:
        with one_thread(), kind() as device:
            report = measure(device, options.rows, schemes, ROUNDS)
    except OpenCLMissingError as error:
        parser.error(str(error))
    except WrongBytesError as error:
        print(f"python -m bench schemes: {error}", file=sys.stderr)
        return 1
    machine = {"device": options.device, "cpus": os.cpu_count(), "load_average": load}
    report |= {"version": VERSION, "benchmark": "schemes"} | machine
    print(f"{options.device}, {os.cpu_count()} CPUs, load {load:.1f} before, one thread, medians of {ROUNDS} rounds")
    print("\n".join(legs_table(report)))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0
