"""`python -m bench device_check`: what can only be tried on an accelerator, in a few minutes on one GPU.

First the tests that need one, each in the same process as the others; then the caches of a GLM-5.3-Flash prefill (its row
widths, random bytes), read and written by every scheme, verified before they are timed, and beside the time the one that
the cost model expects. Exit 0 if all tests pass and all bytes are right, 1 where not, 2 without an accelerator.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import torch

from kvstage import AcceleratorDevice

from .device_legs import ROWS, WrongBytesError, legs_table, measure

VERSION = 1
"""Of the JSON."""
ROOT = Path(__file__).parent.parent
TESTS = ("tests/hardware/test_cuda.py", "tests/behaviour/test_modes.py::test_no_call_synchronizes_under_torchs_own_watch")
PATIENCE = 200
"""Seconds for the tests: they take a tenth of that where the machine is idle."""


def main(argv: list[str]) -> int:
    """Run the tests and the legs, print what was found, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench device_check", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there, as JSON")
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help=f"rows of each cache (default {ROWS})")
    options = parser.parse_args(argv)
    if options.rows < 1:
        parser.error(f"--rows is {options.rows}: a prefill has at least one token")
    if not torch.accelerator.is_available():
        print("python -m bench device_check: torch finds no accelerator here, and this checks nothing else", file=sys.stderr)
        return 2
    began = time.perf_counter()
    report: dict[str, Any] = {"version": VERSION, "benchmark": "device_check", "machine": machine(), "tests": run_tests(ROOT)}
    wrong = None
    try:
        with AcceleratorDevice() as device:
            report |= measure(device, options.rows)
    except WrongBytesError as error:
        wrong = report["wrong_bytes"] = str(error)
    report["seconds"] = time.perf_counter() - began
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if wrong is None and report["tests"]["ok"] else 1


def machine() -> dict[str, Any]:
    """What it is that was checked."""
    accelerator = torch.accelerator.current_accelerator()
    module = torch.get_device_module(accelerator)
    return {
        "accelerator": str(accelerator),
        "name": module.get_device_name() if hasattr(module, "get_device_name") else "",
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def run_tests(root: Path) -> dict[str, Any]:
    """The tests of an accelerator: how many passed, failed and were skipped, and the names of those that did not pass."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tests.xml"
        lenient = ("-W", "default")  # what torch warns of on that machine is not what is checked
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *lenient, f"--junitxml={file}", *TESTS]
        try:
            run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return {"ok": False, "says": f"not done after {PATIENCE} seconds"}
        if not file.exists():
            return {"ok": False, "says": (run.stdout + run.stderr)[-2000:]}
        return outcomes(file.read_text(encoding="utf-8"), run.stdout)


def outcomes(xml: str, says: str) -> dict[str, Any]:
    """Counts, and names of what did not pass, from JUnit XML. A run in which nothing passed is not in order."""
    cases = list(ET.fromstring(xml).iter("testcase"))
    bad = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(bad) - skipped
    found: dict[str, Any] = {"ok": not bad and passed > 0, "passed": passed, "failed": bad, "skipped": skipped}
    return found if found["ok"] else found | {"says": says[-6000:]}


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    tests, made = report["tests"], report["machine"]
    lines = [
        f"{made['name'] or made['accelerator']}, torch {made['torch']}, {made['cpus']} CPUs ({made['architecture']})",
        f"tests: {tests.get('passed', 0)} passed, {len(tests.get('failed', ()))} failed, {tests.get('skipped', 0)} skipped",
        *(f"  FAILED {name}" for name in tests.get("failed", ())),
    ]
    if "says" in tests:
        lines.append(tests["says"])
    if "wrong_bytes" in report:
        lines.append(f"WRONG BYTES: {report['wrong_bytes']}")
    if "legs" in report:
        lines += ["", *legs_table(report)]
    return "\n".join(lines)
