"""Hooks that call the stager, from inside the call that tells them: what is under way stays known."""

import pytest
import torch

from kvstage import HostDevice, Moved, PagedPool, PinnedMemoryError, Stager, ThreadDevice
from kvstage.calls import Calls
from kvstage.runtime.runtime import Runtime
from tests.support.plain import plain_read, random_blocks, same

TABLE = [3, 0, 4]


def everything(_stream: str, _index: int) -> bool:
    return True


NEVER = property(lambda calls: False, lambda calls, value: None)
"""For a stager that does not notice that a hook calls it while it tells of ends."""


def the_first(runtime: Runtime, pending: object) -> None:
    """What a stager forgets that believes that a hook calls nobody."""
    runtime.under_way.popleft()


@pytest.mark.parametrize("guarded", [True, False])
def test_close_waits_for_what_a_hook_has_issued_in_a_call_that_was_refused(monkeypatch, guarded):
    if not guarded:
        monkeypatch.setattr(Runtime, "forget", the_first)
        monkeypatch.setattr(Calls, "_forgetting", NEVER, raising=False)
    blocks, out = random_blocks(1, 5, 4, (3,), torch.bfloat16), torch.zeros(4, 3, dtype=torch.bfloat16)
    pool, told = PagedPool(blocks.tensor), []

    def hook(moved: Moved) -> None:
        told.append(moved)
        if len(told) == 1:
            stager.read(pool, [2], 0, 4, out=out)

    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=hook, pinned_bytes=50)
        first = stager.read(pool, TABLE, 0, 8, out=torch.zeros(8, 3, dtype=torch.bfloat16))
        device.synchronize(first.stream)
        with device.hold(everything):
            expected = PinnedMemoryError if guarded else (PinnedMemoryError, IndexError)
            with pytest.raises(expected):
                stager.read(pool, TABLE, 0, 12)
            assert len(told) == 1
            assert len(stager._calls._under_way) == guarded
            stager.close()
            assert same(out, plain_read(blocks.tensor, [2], 0, 4)) == guarded


@pytest.mark.parametrize("guarded", [True, False])
def test_a_hook_whose_call_leaves_nothing_under_way(monkeypatch, guarded):
    if not guarded:
        monkeypatch.setattr(Runtime, "forget", the_first)
        monkeypatch.setattr(Calls, "_forgetting", NEVER, raising=False)
    blocks, target = random_blocks(1, 5, 4, (3,), torch.bfloat16), torch.zeros(5, 4, 3, dtype=torch.bfloat16)
    pool, inner = PagedPool(blocks.tensor), []

    def hook(moved: Moved) -> None:
        if moved.direction == "copy":
            inner.append(stager.read(pool, [1], 0, 4))

    with ThreadDevice() as device:
        stager = Stager(device, scheme="per_block", on_transfer=hook)
        copy = stager.copy(pool, [1], PagedPool(target), [2])
        device.synchronize(copy.stream)
        if guarded:
            stager.read(pool, TABLE, 0, 12).wait()
            inner[0].wait()
            assert same(inner[0].result(), plain_read(blocks.tensor, [1], 0, 4))
        else:
            with pytest.raises(IndexError):
                stager.read(pool, TABLE, 0, 12)


def test_a_hook_that_raises_leaves_nothing_in_doubt():
    """The work has ended: the next call has nothing to wait for before its own."""
    pool = PagedPool(torch.ones(5, 4, 3))

    def hook(_moved: Moved) -> None:
        raise ZeroDivisionError

    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=hook)
        first = stager.read(pool, TABLE, 0, 8)
        device.synchronize(first.stream)
        with pytest.raises(ZeroDivisionError):
            stager.read(pool, TABLE, 0, 8)
        waits = device.waits
        stager.read(pool, TABLE, 0, 8)
        assert device.waits == waits
        with pytest.raises(ZeroDivisionError):
            stager.close()


def test_a_hook_that_calls_each_time_comes_to_an_end():
    """Each call that it makes has ended when it returns, so there is always one more to be told of."""
    pool, told = PagedPool(torch.ones(5, 4, 3)), []

    def hook(moved: Moved) -> None:
        told.append(moved)
        stager.read(pool, TABLE, 0, 8)

    stager = Stager(HostDevice(), scheme="direct", on_transfer=hook)
    stager.read(pool, TABLE, 0, 8)
    stager.read(pool, TABLE, 0, 8)
    assert len(told) == 1


@pytest.mark.parametrize("guarded", [True, False])
def test_many_ends_at_once_are_told_one_behind_the_other(monkeypatch, guarded):
    """Not each from inside the one before: that would be deeper than Python's stack."""
    if not guarded:
        monkeypatch.setattr(Calls, "_forgetting", NEVER, raising=False)
    pool, told, number = PagedPool(torch.ones(5, 4, 3)), [], 1500

    def hook(moved: Moved) -> None:
        told.append(moved)
        if len(told) <= number:
            stager.read(pool, TABLE, 0, 1)

    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=hook)
        with device.hold(everything):
            for _ in range(number):
                stager.read(pool, TABLE, 0, 1)
            assert not told
        device.synchronize("kvstage copy")
        if guarded:
            stager.read(pool, TABLE, 0, 1)
            assert len(told) == number
        else:
            with pytest.raises(RecursionError):
                stager.read(pool, TABLE, 0, 1)
