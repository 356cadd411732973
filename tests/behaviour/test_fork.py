"""A forked child has no threads, and no driver that works: it gets an error by name instead of a wait without end."""

import json
import subprocess
import sys
from threading import Event, Thread

import pytest

from kvstage import HostDevice
from kvstage.devices import lock
from kvstage.devices.lock import lock_of

CODE = """
import json, os, signal, threading
import torch
from kvstage import ForkedError, HostDevice, PagedPool, Stager, ThreadDevice
from kvstage import calls
from kvstage.devices import threads as thread_device
from kvstage.runtime import pending
from kvstage_model.language.buffers import Memory

CHECK = pending.check_process

def refused_by_the_device():
    device, event = ThreadDevice(), None
    rows = device.view(Memory.DEVICE, torch.zeros(1, 4, 3, dtype=torch.uint8))
    pool, event = PagedPool(torch.ones(4, 2, 3)), device.event()
    device.copy("copy", rows[0, 0:1], rows[0, 1:2])
    device.record(event, "copy")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        refusals = []
        for name, call in {
            "copy": lambda: device.copy("copy", rows[0, 0:1], rows[0, 1:2]),
            "allocate": lambda: device.allocate(Memory.PINNED, 3),
            "synchronize": lambda: device.synchronize("copy"),
            "record": lambda: device.record(event, "copy"),
            "wait_event": lambda: device.wait_event("other", event),
            "wait": lambda: device.wait(event),
            "query": lambda: device.query(event),
            "stager": lambda: Stager(device, scheme="direct").read(pool, [3, 0], 0, 4).wait(),
            "auto": lambda: Stager(device),
            "close": device.close,
        }.items():
            try:
                call()
            except ForkedError:
                refusals.append(name)
        os.write(write, json.dumps(refusals).encode())
        os._exit(0)
    os.waitpid(child, 0)
    device.wait(event)
    device.close()
    return json.loads(os.read(read, 1000))

def refused(scheme, held, guarded):
    pending.check_process = calls.check_process = thread_device.check_process = CHECK if guarded else lambda _: None
    pool, host = PagedPool(torch.ones(4, 2, 3)), PagedPool(torch.zeros(4, 2, 3))
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        with device.hold(lambda _stream, _index: held):
            transfer = stager.read(pool, [3, 0], 0, 4)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                refusals = []
                later = {"wait": transfer.wait, "close": stager.close} if guarded else {}
                for name, call in {
                    "read": lambda: stager.read(pool, [3, 0], 0, 4),
                    "write": lambda: stager.write(pool, [3, 0], 0, torch.ones(4, 3)),
                    "copy": lambda: stager.copy(pool, [0], host, [1]),
                    "query": transfer.query,
                    "wait_stream": lambda: transfer.wait_stream("caller"),
                    **later,
                }.items():
                    try:
                        call()
                    except ForkedError as error:
                        assert "spawn" in str(error)
                        refusals.append(name)
                os.write(write, json.dumps(refusals).encode())
                os._exit(0)
            os.waitpid(child, 0)
            told = json.loads(os.read(read, 1000))
        transfer.wait()
        assert transfer.result().eq(1).all(), "the parent goes on"
        stager.close()
    return told

def in_a_call(kind):
    # what a child gets that was forked while another thread was inside a call: the name of its error, or how it ended
    inside, go, pool = threading.Event(), threading.Event(), PagedPool(torch.ones(4, 2, 3))
    class Slow(kind):
        def copy(self, *arguments):
            inside.set()
            go.wait()
            super().copy(*arguments)
    device = Slow()
    stager = Stager(device, scheme="per_block")
    thread = threading.Thread(target=stager.read, args=(pool, [1], 0, 2))
    thread.start()
    inside.wait()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        go.set()
        try:
            Stager(device, scheme="direct").read(pool, [3, 0], 0, 3).wait()
            name = "works"
        except Exception as error:
            name = type(error).__name__
        os.write(write, name.encode())
        os._exit(0)
    hangs = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    go.set()
    thread.join()
    device.close()
    return "hangs" if hangs else os.read(read, 100).decode()

inside = [in_a_call(ThreadDevice), in_a_call(HostDevice)]
ran = [refused_by_the_device(), refused("direct", True, True), refused("per_block", False, True),
    refused("direct", True, False), inside]
print(json.dumps(ran))
"""


@pytest.fixture(scope="module")
def refused() -> list[list[str]]:
    """What the child was refused, in a process of its own: by a device, with work under way, with none, and without the check."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{CODE}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    answer: list[list[str]] = json.loads(ran.stdout)
    return answer


def test_the_child_is_refused_by_name_and_the_parent_goes_on(refused):
    assert refused[1] == ["read", "write", "copy", "query", "wait_stream", "wait", "close"]


def test_what_was_done_before_the_fork_is_done_in_the_child_too(refused):
    assert refused[2] == ["read", "write", "copy", "close"]


def test_twin_without_the_check_the_child_is_not_refused(refused):
    """Its calls return as if all were well, and its rows never arrive: a wait would never end."""
    assert refused[3] == []


def test_a_child_that_was_forked_during_a_call_does_not_hang(refused):
    assert refused[4] == ["ForkedError", "works"]


def test_twin_a_lock_that_is_not_renewed_stays_held_in_the_child():
    device = HostDevice()
    held, free = Event(), Event()

    def hold() -> None:
        with lock_of(device):
            held.set()
            free.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    assert not lock_of(device).acquire(blocking=False)
    lock._renew()
    assert lock_of(device).acquire(blocking=False)
    free.set()
    thread.join()


def test_the_device_itself_refuses_what_would_never_end(refused):
    assert refused[0] == ["copy", "allocate", "synchronize", "record", "wait_event", "wait", "query", "stager", "auto", "close"]
