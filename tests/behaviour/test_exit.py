"""The process ends with work under way: its exit code is kept, and nothing aborts it. One process forks a child for each case."""

import json
import subprocess
import sys

import pytest

CODE = """
import atexit, json, os, signal, sys
import torch
from kvstage import HostDevice, Memory, OpenCLDevice, PagedPool, SimDevice, Stager, ThreadDevice
from kvstage.devices import thread_worker
from kvstage_model.schedules.schedule import IssueOrder

def leave(device, held=False, blocks=200):
    pool = PagedPool(torch.zeros(blocks, 2, 32, 512, dtype=torch.bfloat16)[:, 0])  # with gaps: torch's own threads pack its rows
    holding = device.hold(lambda stream, index: index % 2 == 1) if held else None
    if holding:
        holding.__enter__()
    stager = Stager(device, scheme="gather_pinned")
    return [stager.read(pool, list(range(blocks))[::-1], 0, blocks * 32) for _ in range(4)], holding, stager

def leave_across(device):
    # a stream that waits for another one, whose work is held
    holding = device.hold(lambda stream, index: True)
    holding.__enter__()
    cells = [device.view(Memory.PINNED, torch.zeros(1, 1, 4, dtype=torch.uint8))[0, 0:1] for _ in range(2)]
    pool = PagedPool(torch.zeros(4, 2, 3))
    stager = Stager(device, scheme="direct")
    stager.read(pool, [1], 0, 2)
    device.copy("b", *cells)
    return stager.read(pool, [1], 0, 2, after="b"), holding, stager

CASES = {
    "threads, across": lambda: leave_across(ThreadDevice()),
    "threads": lambda: leave(ThreadDevice(), blocks=2000),
    "threads, held": lambda: leave(ThreadDevice(), True, 2000),
    "threads, dropped": lambda: leave(ThreadDevice(), blocks=2000) and None,
    "opencl": lambda: leave(OpenCLDevice()),
    "opencl, held": lambda: leave(OpenCLDevice(), True),
    "host": lambda: leave(HostDevice()),
    "simulated": lambda: leave(SimDevice(IssueOrder())),
    "twin": lambda: (atexit.unregister(thread_worker._drop_all), leave(ThreadDevice(), blocks=2000)),
}
codes = {}
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        signal.alarm(60)
        kept = CASES[name]()
        sys.exit(7)
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(codes))
"""


def codes(*cases: str) -> dict[str, int]:
    """The exit code of a child for each case, all forked from one process."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{CODE}"
    ran = subprocess.run([sys.executable, "-c", code, *cases], capture_output=True, text=True, check=True, timeout=300)
    answer: dict[str, int] = json.loads(ran.stdout)
    return answer


def test_the_exit_code_is_kept_and_without_the_end_of_the_threads_the_process_aborts() -> None:
    assert codes("threads, across", "threads, held", "twin") == {"threads, across": 7, "threads, held": 7, "twin": -6}


@pytest.mark.extended
def test_on_every_device() -> None:
    cases = ("threads", "threads, dropped", "opencl", "opencl, held", "host", "simulated")
    assert codes(*cases) == dict.fromkeys(cases, 7)
