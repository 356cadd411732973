"""A loop of six copies, in a test file of a user's, and pytest runs of it in this process."""

import pytest

PLUGIN = ("-p", "pytest_kvstage.plugin")

UPLOAD = """
import pytest
from kvstage_model import Memory

STEPS = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]

def upload(device, wait):
    pinned, table = device.allocate(Memory.PINNED, 4), device.allocate(Memory.DEVICE, 4)
    used = device.allocate(Memory.DEVICE, 12).view(3, 4)
    for step, ids in enumerate(STEPS):
        for at in range(4):
            pinned[at] = ids[at]
        device.copy("h2d", pinned, table)
        device.copy("h2d", table, used[step])
        if wait:
            device.synchronize("h2d")
    device.synchronize("h2d")
    return used.tolist()
"""
"""A loop of six copies: thirteen delays."""


RIGHT = """
def test_right(staging_schedule):
    upload(staging_schedule.device(), wait=True)
"""
WRONG = """
def test_wrong(staging_schedule):
    with open("names", "a") as names:
        print(staging_schedule.name, file=names)
    assert upload(staging_schedule.device(), wait=False) == STEPS
"""


def run(pytester: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(UPLOAD + tests)
    return pytester.runpytest_inprocess(*PLUGIN, *arguments)
