"""`kvstage check` on files that were made to be slow: a verdict, or an error by name, in little time and memory."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Value = dict[str, Any]

MEBIBYTES, SECONDS = 256, 6
"""What the check may take: the memory beyond that of a program that has imported it, and the processor time of all."""

PROGRAM = """
import math, resource, sys
import kvstage_proofs.commands.main
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[2]) << 20),) * 2)
spent = resource.getrusage(resource.RUSAGE_SELF)
resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(spent.ru_utime + spent.ru_stime) + int(sys.argv[3]),) * 2)
sys.exit(kvstage_proofs.commands.main.main(["check", sys.argv[1], "--scheme", "per_row.read"]))
"""


def rows(buffer: str, slot: int = 0, start: int = 0, count: int = 1) -> Value:
    return {"buffer": buffer, "slot": slot, "start": start, "count": count}


def event(index: int) -> Value:
    return {"name": "e", "index": index, "call": 0}


def records(number: int) -> Value:
    """Records and waits of a few events on a few streams, each ordered by all that came before."""
    record = {"kind": "RecordEvent", "event": event(number % 7), "stream": f"s{number % 5}"}
    return record if number % 2 else {"kind": "WaitEvent", "event": event(number % 7), "stream": f"s{number * 3 % 5}"}


def marked(number: int) -> Value:
    """A copy, a use of its rows, and in between very many events that the use could wait for."""
    if number == 0:
        return {"kind": "Copy", "stream": "s", "source": rows("pool"), "target": rows("stage")}
    return {"kind": "HostRead", "source": rows("stage")} if number == 1189 else record(number)


def record(number: int) -> Value:
    return {"kind": "RecordEvent", "event": event(number), "stream": "s"}


def lent(number: int) -> Value:
    """Rows that are released again and again, and taken back again and again."""
    return {"kind": "Release", "target": rows("out")} if number < 300 else {"kind": "Acquire", "target": rows("out", 0, 0, 3)}


def asked(number: int) -> Value:
    """Each query that says "not yet" puts its record behind it."""
    if number < 28:
        return record(number)
    return (
        {"kind": "QueryEvent", "event": event(number - 28), "answer": 0} if number < 56 else {"kind": "SyncStream", "stream": "z"}
    )


def lanes(number: int) -> Value:
    """A race, and a picture of more than a thousand lanes."""
    return {"kind": "Launch", "stream": f"s{number}", "reads": [], "writes": [rows("out")] if number in (0, 1189) else []}


def written(number: int) -> Value:
    """Accesses to one row, each of which is compared with all others."""
    return {"kind": "HostWrite", "target": rows("out")}


HOSTILE: dict[str, tuple[Callable[[int], Value], int]] = {
    "records": (records, 1190),
    "marked": (marked, 1190),
    "lent": (lent, 899),
    "asked": (asked, 580),
    "lanes": (lanes, 1190),
    "written": (written, 599),
    "calls": (lambda number: {"call": number, "kind": "SyncStream", "stream": "copy"}, 1190),
}


def hostile(name: str) -> Value:
    """A trace of the one kind of operations, everything in issue order."""
    made, number = HOSTILE[name]
    program = [{"call": 0, "phase": "loop", "step": 0} | made(k) for k in range(number)]
    arguments = {"rows": {"table": [0], "num_blocks": 1, "block_size": 2000, "start": 0, "stop": 2000}}
    return {
        "format": "kvstage trace",
        "version": 1,
        "calls": [arguments] * (program[-1]["call"] + 1),
        "buffers": [
            {"name": name, "memory": memory, "slots": 1, "rows": 3}
            for name, memory in (("pool", "device"), ("stage", "pinned"), ("out", "pageable"))
        ],
        "program": program,
        "events": [{"operation": k, "moment": moment} for k in range(number) for moment in ("begin", "end")],
    }


def checked(file: Path, seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
    """`kvstage check`, with little time and memory."""
    command = [sys.executable, "-c", PROGRAM, str(file), str(MEBIBYTES), str(seconds)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_verdict_comes_in_little_time_and_memory(name: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(hostile(name)), encoding="utf-8")
    run = checked(file)
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.endswith(f"{file}: not a run of per_row.read\n")


def test_twin_the_limits_hold() -> None:
    for hungry, message in ((f"bytes({2 * MEBIBYTES} << 20)", "MemoryError"), ("while True: pass", "")):
        program = PROGRAM[: PROGRAM.index("sys.exit")] + hungry
        run = subprocess.run(
            [sys.executable, "-c", program, "", str(MEBIBYTES), "0"], capture_output=True, text=True, check=False, env=os.environ
        )
        assert run.returncode not in (0, 2)
        assert message in run.stderr
