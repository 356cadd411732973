"""Two stagers of one device, in two threads: the device sees one thread at a time that issues work."""

from threading import Event, RLock, Thread, get_ident

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice, calls
from kvstage.costs import HOST
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage.runtime import pending
from tests.support.plain import plain_read, random_blocks, same
from tests.support.tiers import often

TABLE = [3, 0, 4]
ISSUING = ("view", "allocate", "copy", "gather", "scatter", "synchronize", "record", "wait_event", "order_after", "order_before")
PATIENCE = 0.05
"""Seconds that the first thread stays inside a call for, where no other comes."""


class Watched(ThreadDevice):
    """Notes which threads were inside at once; the first time, it lets another one come in."""

    costs = HOST

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[int] = []
        self.together: set[frozenset[int]] = set()
        self.met = Event()

    def __getattribute__(self, name: str):
        found = super().__getattribute__(name)
        if name not in ISSUING:
            return found

        def watched(*arguments):
            self.inside.append(get_ident())
            self.together.add(frozenset(self.inside))
            if len(set(self.inside)) > 1:
                self.met.set()
            elif name == "copy" and len(self.together) < 3:
                self.met.wait(PATIENCE)
            try:
                return found(*arguments)
            finally:
                self.inside.remove(get_ident())

        return watched


def most_inside(scheme: str) -> int:
    blocks, wrong = random_blocks(1, 5, 4, (3,), torch.bfloat16), []
    device = Watched()
    with device:
        stagers = [Stager(device, scheme=scheme), Stager(device, scheme=scheme)]

        def work(stager: Stager) -> None:
            for _ in range(5):
                read = stager.read(PagedPool(blocks.tensor), TABLE, 2, 11)
                read.wait_stream("mine")
                read.wait()
                if not same(read.result(), plain_read(blocks.tensor, TABLE, 2, 11)):
                    wrong.append(stager)
            stager.close()

        threads = [Thread(target=work, args=(stager,)) for stager in stagers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    assert not wrong
    assert len(frozenset().union(*device.together)) == 2, "both came in"
    return max(map(len, device.together))


@pytest.mark.parametrize("scheme", often(["direct", "per_block", "ring"], 1))
def test_one_thread_at_a_time_issues_work(scheme):
    assert most_inside(scheme) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # what is broken may break off
def test_twin_with_a_lock_for_each_stager_two_do(monkeypatch, watch):
    monkeypatch.setattr(calls, "lock_of", lambda device: RLock())
    monkeypatch.setattr(pending, "lock_of", lambda device: RLock())
    assert most_inside("direct") == 2
    watch.taken()  # two calls at once on one device look like none of the scheme


def test_a_stager_that_waits_for_its_end_keeps_no_other_from_calling():
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    pool = PagedPool(blocks.tensor)
    with ThreadDevice() as device:
        first, second = Stager(device, scheme="direct"), Stager(device, scheme="direct")
        gate = Event()
        first.read(pool, TABLE, 2, 11)
        device._worker(OWN_STREAMS["copy"]).queue.put((gate.wait, (), None, None))
        kept = first.read(pool, TABLE, 2, 11)
        closing = Thread(target=first.close)
        closing.start()
        read = second.read(pool, TABLE, 2, 11)  # which would never return
        assert not read.query()
        assert closing.is_alive()
        gate.set()
        read.wait()
        closing.join(timeout=60)
        assert not closing.is_alive()
        kept.wait()
        assert same(kept.result(), read.result())
