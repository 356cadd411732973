"""Every call of the device fails once, in turn: nothing half-written is handed out, and no memory is used too early.

A checked device looks on: it finds any access to memory that a copy may still touch, and memory that is let go of while
one may. It finds them by what is ordered, not by what happens to go wrong, so one schedule is enough.
"""

import pytest
import torch

from kvstage import CheckedDevice, PagedPool, Stager, StagingError, Stats, ThreadDevice, Transfer
from kvstage.runtime.runtime import Runtime
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.schemes.registry import LIBRARY
from tests.support.faulty import Faulty, InjectedError
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, raw, same
from tests.support.tiers import often

SCHEMES = sorted(LIBRARY)
DIRECTIONS = ("read", "write", "copy")
TABLE = [3, 0, 4]
OPTIONS = {"ring": {"slots": 2}, "gather": {"slots": 2}}


class Case:
    """A pool, rows for it, and one call that may fail."""

    def __init__(self, device: Faulty, scheme: str, direction: str) -> None:
        self.blocks = random_blocks(1, 5, 2, (3,), torch.bfloat16)
        self.rows = random_rows(2, 4, (3,), torch.bfloat16)
        self.host = random_blocks(3, 3, 4, (3,), torch.bfloat16)
        self.before = self.blocks.memory()
        self.device, self.direction = device, direction
        self.pool = PagedPool(self.seen(self.blocks.tensor))
        self.stager = Stager(device, scheme=scheme, **OPTIONS.get(scheme, {}))

    def call(self) -> Transfer:
        if self.direction == "read":
            return self.stager.read(self.pool, TABLE, 1, 5, after="caller")
        if self.direction == "write":
            return self.stager.write(self.pool, TABLE, 1, self.seen(self.rows), after="caller")
        return self.stager.copy(self.pool, [3, 0], PagedPool(self.seen(self.host.tensor)), [1], after="caller")

    def seen(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor as one whose uses a checked device notes; itself for other devices."""
        device = self.device.device
        return device.host_view(tensor) if isinstance(device, CheckedDevice) else tensor

    def is_right(self, transfer: Transfer) -> bool:
        if self.direction == "read":
            return same(transfer.result(), plain_read(self.blocks.tensor, TABLE, 1, 5))
        if self.direction == "write":
            return same(self.blocks.base, self.expected)
        return same(self.host.tensor[1], self.blocks.tensor[[3, 0]].flatten(0, 1))

    @property
    def expected(self) -> torch.Tensor:
        blocks = random_blocks(1, 5, 2, (3,), torch.bfloat16)
        return plain_write(blocks, TABLE, 1, self.rows)

    def untouched(self) -> bool:
        """Whether each byte of the pool is as it was, or as the call makes it."""
        now = self.blocks.base
        changed = self.expected if self.direction == "write" else self.before
        return bool(((now == self.before) | (now == changed)).all())


def run(case: Case) -> bool:
    """Whether the call came to its end in spite of the fault; then, or once the device works again, it is right."""
    try:
        transfer = case.call()
        transfer.wait()
    except InjectedError:
        whole = False
    else:
        whole = case.is_right(transfer)
        assert whole, "what is handed out is whole"
    assert case.untouched()
    case.device.mend()
    again = case.call()
    again.wait()
    assert case.is_right(again)
    again.release()
    case.stager.close()
    return whole


def faults(scheme: str, direction: str, done: bool) -> list[str]:
    """The calls that failed, one a run."""
    failed = []
    for at in range(200):
        with CheckedDevice(IssueOrder()) as device:
            faulty = Faulty(device, at, done)
            whole = run(Case(faulty, scheme, direction))
        if whole:
            return failed
        failed.append(faulty.seen[at])
    raise AssertionError("it never ends")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("done", often([False, True], 18))
def test_each_call_fails_in_turn_and_the_stager_works_on(scheme, direction, done):
    failed = faults(scheme, direction, done)
    assert {"view", "order_after"} <= set(failed)
    assert len(failed) > 6
    assert set(failed) & {"copy", "gather", "scatter"}
    assert set(failed) & {"wait", "synchronize"}


@pytest.mark.parametrize(("scheme", "direction"), [("per_block", "write"), ("ring", "write"), ("gather", "read")])
def test_twin_without_the_settling_a_later_call_uses_memory_that_a_copy_still_touches(monkeypatch, scheme, direction):
    monkeypatch.setattr(Runtime, "_break_off", lambda *_: None)
    with pytest.raises(StagingError):
        faults(scheme, direction, done=False)


def failing_wait(scheme: str, name: str, error: type[BaseException]) -> tuple[Stats, Stats]:
    """A wait or a query that is interrupted leaves the transfer as it was: asked again it is right."""
    with ThreadDevice() as device, device.hold(lambda _stream, _index: True):
        faulty = Faulty(device, -1, False, error)
        case = Case(faulty, scheme, "read")
        transfer = case.call()
        before = transfer.stats
        faulty._at = len(faulty.seen)
        with pytest.raises(error, match=name):
            getattr(transfer, name)()
        faulty.mend()
        assert not transfer.query()
        transfer.wait()
        assert case.is_right(transfer)
        case.stager.close()
        return before, transfer.stats


@pytest.mark.parametrize("scheme", ["direct", "gather_pinned", "gather_host", "gather_copy"])
@pytest.mark.parametrize("name", ["wait", "query"])
def test_an_interrupted_wait_can_be_made_again(scheme, name):
    before, after = failing_wait(scheme, name, KeyboardInterrupt)
    assert after == before + Stats(waits=1)


@pytest.mark.parametrize("error", [InjectedError, KeyboardInterrupt])
def test_an_interrupted_close_can_be_made_again(error):
    with ThreadDevice() as device, device.hold(lambda _stream, _index: True):
        faulty = Faulty(device, -1, False, error)
        case = Case(faulty, "direct", "write")
        case.call()
        faulty._at = len(faulty.seen)
        with pytest.raises(error):
            case.stager.close()
        faulty.mend()
        assert raw(case.blocks.tensor).equal(raw(case.before.view(torch.bfloat16).view(case.blocks.tensor.shape)))
        case.stager.close()
        assert same(case.blocks.base, case.expected)


def test_a_fault_that_stays_leaves_the_stager_waiting_not_wrong():
    """As long as the device can't say that its work has ended, no call is made and no memory is used again."""
    with ThreadDevice() as device:
        faulty = Faulty(device, -1, False)
        case = Case(faulty, "per_block", "write")
        with device.hold(lambda _stream, _index: True):
            faulty.host_copy = lambda *_: (_ for _ in ()).throw(InjectedError("host_copy"))
            faulty.synchronize = lambda *_: (_ for _ in ()).throw(InjectedError("synchronize"))
            for _ in range(3):
                with pytest.raises(InjectedError):
                    case.call()
            assert device.copies <= 1
            faulty.synchronize, faulty.host_copy = device.synchronize, device.host_copy
            write = case.call()
            write.wait()
            assert case.is_right(write)


def test_a_fault_in_one_call_of_a_batch_leaves_the_others_right():
    with ThreadDevice() as device:
        faulty = Faulty(device, -1, False)
        case = Case(faulty, "direct", "read")
        with case.stager.batch() as batch:
            first = batch.read(case.pool, TABLE, 1, 5)
            faulty._at = len(faulty.seen) + 3
            with pytest.raises(InjectedError):
                batch.read(case.pool, TABLE, 0, 6)
        faulty.mend()
        batch.wait()
        assert case.is_right(first)
        assert len(batch) == 1
