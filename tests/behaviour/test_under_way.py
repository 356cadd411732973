"""Many transfers under way at once, in any order of calls, waits, releases and cancels, against a plain model of the pool."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage import PagedPool, SimDevice, Stager, ThreadDevice, Transfer
from kvstage.runtime.pending import Pending
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.seeded import seeded
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, random_blocks, random_rows, same

SCHEMES = sorted(LIBRARY)
SIZE, LENGTH = 2, 12
TABLE = [4, 0, 5, 2, 1, 3]


@dataclass
class Expected:
    """A transfer, and what it brings."""

    transfer: Transfer
    rows: torch.Tensor | None

    def check(self) -> None:
        self.transfer.wait()
        if self.rows is not None:
            assert same(self.transfer.result(), self.rows)


calls = st.tuples(st.sampled_from(["read", "write", "copy", "load"]), st.integers(0, LENGTH - 1), st.integers(1, 6))
deeds = st.tuples(st.sampled_from(["wait", "wait", "release", "cancel", "query", "drop"]), st.integers(0, 9))
programs = st.lists(st.one_of(calls, calls, deeds), min_size=3, max_size=14)


def run(device, scheme: str, program: list[tuple], held=None) -> int:
    """Performs a program: how many transfers were compared."""
    pool, host = random_blocks(1, 6, SIZE, (3,), torch.uint8), random_blocks(2, 3, 2 * SIZE, (3,), torch.uint8)
    plain_pool, plain_host = pool.tensor.clone(), host.tensor.clone()
    stager = Stager(device, scheme=scheme)
    under_way: list[Expected] = []
    compared = 0
    for number, step in enumerate(program):
        if step[0] in ("read", "write"):
            start, stop = step[1], min(step[1] + step[2], LENGTH)
            places = [(TABLE[p // SIZE], p % SIZE) for p in range(start, stop)]
            if step[0] == "read":
                expected = plain_read(plain_pool, TABLE, start, stop)
                under_way.append(Expected(stager.read(PagedPool(pool.tensor), TABLE, start, stop), expected))
            else:
                rows = random_rows(number, stop - start, (3,), torch.uint8)
                for place, row in zip(places, rows, strict=True):
                    plain_pool[place] = row
                under_way.append(Expected(stager.write(PagedPool(pool.tensor), TABLE, start, rows), None))
        elif step[0] in ("copy", "load"):
            blocks, others = TABLE[step[1] % 3 : step[1] % 3 + 3], [step[2] % 3, (step[2] + 1) % 3]
            whole = plain_host[others].flatten(0, 1)
            if step[0] == "copy":
                whole[: 3 * SIZE] = plain_pool[blocks].flatten(0, 1)
                plain_host[others] = whole.unflatten(0, (2, 2 * SIZE))
                transfer = stager.copy(PagedPool(pool.tensor), blocks, PagedPool(host.tensor), others)
            else:
                plain_pool[blocks] = whole[: 3 * SIZE].unflatten(0, (3, SIZE))
                transfer = stager.copy(PagedPool(host.tensor), others, PagedPool(pool.tensor), blocks)
            under_way.append(Expected(transfer, None))
        elif under_way:
            deed, one = step[0], under_way.pop(step[1] % len(under_way))
            if deed == "cancel":
                one.transfer.cancel()
            elif deed in ("wait", "release") or (deed == "query" and one.transfer.query()):
                one.check()
                compared += 1
                if deed == "release":
                    one.transfer.release()
            elif deed == "query":
                under_way.append(one)
    for one in under_way:
        one.check()
        compared += 1
    stager.close()
    assert same(pool.tensor, plain_pool)
    assert same(host.tensor, plain_host)
    return compared


@given(st.sampled_from(SCHEMES), programs, st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_any_program_on_worker_threads_with_some_work_held(scheme, program, every):
    with ThreadDevice() as device, device.hold(lambda _stream, index: index % every == 0):
        run(device, scheme, program)


@given(st.sampled_from(SCHEMES), programs, st.integers(0, 2**16))
@settings(max_examples=100, deadline=None)
def test_any_program_under_some_schedule(scheme, program, seed):
    for _, compared in seeded(lambda schedule: run(SimDevice(schedule), scheme, program), seed, 1):
        assert compared >= 0


def test_a_busy_program_under_every_delay():
    program = [
        ("write", 1, 5),
        ("read", 0, 6),
        ("copy", 0, 1),
        ("cancel", 1),
        ("read", 3, 4),
        ("release", 0),
        ("load", 2, 2),
        ("read", 2, 6),
    ]
    ran = [compared for _, compared in delays(lambda schedule: run(SimDevice(schedule), "direct", program))]
    assert len(ran) > 30
    assert set(ran) == {5}


def test_twin_a_wait_that_does_not_wait_is_seen(monkeypatch, watch):
    monkeypatch.setattr(Pending, "wait", lambda self, timeout=None: self._end(1))
    with ThreadDevice() as device, device.hold(lambda _stream, _index: True), pytest.raises(AssertionError):
        run(device, "direct", [("read", 0, 6)])
    assert watch.taken()
