"""The library on real asynchronous devices whose work is held back until it is waited for: what is lost shows every time."""

import pytest
import torch

from kvstage import PagedPool, Stager
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.schemes.base import COMPUTE, STREAM
from kvstage_model.schemes.registry import LIBRARY, Pair
from tests.support.broken import early_wait, edited, late_wait, unedited, without, without_wait
from tests.support.devices import REAL
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same


def marked(kind):
    """A device whose new memory holds bytes that no row has by chance."""

    class Marked(kind):
        def allocate(self, memory, size):
            return super().allocate(memory, size).fill_(0xA5)

    return Marked()


PAIRS = {
    "ring": LIBRARY["ring"],
    "gather": Pair(
        lambda rows, slots: LIBRARY["gather"].read(rows, slots, 3), lambda rows, slots: LIBRARY["gather"].write(rows, slots, 3)
    ),
    "direct": LIBRARY["direct"],
    "gather_pinned": LIBRARY["gather_pinned"],
}


def returned(kind, scheme: Pair, name: str, direction: str, *, hold: bool) -> bool:
    """Whether the rows of a call are right when the call and its wait are over, where work is held back until it is waited for."""
    blocks, table = random_blocks(1, 6, 4, (3,), torch.bfloat16), [3, 0, 4, 5]
    rows, out = random_rows(2, 14, (3,), torch.bfloat16), random_rows(3, 14, (3,), torch.bfloat16)
    pool = PagedPool(blocks.tensor)
    read, written = plain_read(blocks.tensor, table, 1, 15), plain_write(blocks, table, 1, rows)
    with marked(kind) as device:
        stager = Stager(device, scheme=scheme, slots=2 if name in ("ring", "gather") else None)
        with device.hold(lambda _stream, _index: hold):
            if direction == "read":
                stager.read(pool, table, 1, 15, out=out).wait()
                return same(out, read)
            stager.write(pool, table, 1, rows).wait()
            return same(blocks.memory(), written)


@pytest.fixture(params=REAL)
def kind(request):
    return REAL[request.param]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_schemes_with_events_and_kernels_are_right_where_all_is_held(kind, name, direction):
    assert returned(kind, PAIRS[name], name, direction, hold=True)
    assert returned(kind, PAIRS[name], name, direction, hold=False)


LOST = [
    ("ring", "read", Named(SyncEvent)),
    ("ring", "read", Named(RecordEvent)),
    ("ring", "write", Named(SyncEvent)),
    ("ring", "write", Named(RecordEvent)),
    ("ring", "write", Named(SyncStream)),
    ("gather", "read", Named(SyncEvent)),
    ("gather", "read", Named(WaitEvent, STREAM)),
    ("gather", "read", Named(RecordEvent)),
    ("gather", "write", Named(SyncEvent)),
    ("gather", "write", Named(WaitEvent, COMPUTE)),
    ("gather", "write", Named(SyncStream)),
    ("gather", "write", Named(RecordEvent)),
    ("direct", "read", Named(SyncStream)),
    ("direct", "write", Named(SyncStream)),
    ("gather_pinned", "read", Named(SyncStream)),
    ("gather_pinned", "write", Named(SyncStream)),
]


@pytest.mark.parametrize(("name", "direction", "named"), LOST, ids=str)
def test_held_work_shows_every_wait_or_record_that_was_lost(kind, name, direction, named):
    assert not returned(kind, without(PAIRS[name], named), name, direction, hold=True)


def transferred(kind, edit, direction: str, name: str, *, hold: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What a call has written when it returns, and what it must be, where copies are held back as long as nobody waits."""
    blocks, table = random_blocks(1, 5, 4, (3,), torch.bfloat16), [3, 0, 4]
    rows, out = random_rows(2, 9, (3,), torch.bfloat16), random_rows(3, 9, (3,), torch.bfloat16)
    pool = PagedPool(blocks.tensor)
    read, written = plain_read(blocks.tensor, table, 2, 11), plain_write(blocks, table, 2, rows)
    with kind() as device:
        stager = Stager(device, scheme=edited(name, edit))
        with device.hold(lambda _stream, _index: hold):
            if direction == "read":
                stager.read(pool, table, 2, 11, out=out)
            else:
                stager.write(pool, table, 2, rows)
            return (out, read) if direction == "read" else (blocks.memory(), written)


@pytest.mark.parametrize("name", ["per_row", "per_block"])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_held_copies_show_every_missing_or_misplaced_wait(kind, name, direction):
    assert same(*transferred(kind, unedited, direction, name, hold=True))
    assert same(*transferred(kind, unedited, direction, name, hold=False))
    assert not same(*transferred(kind, without_wait, direction, name, hold=True))
    assert not same(*transferred(kind, early_wait, direction, name, hold=True))
    assert same(*transferred(kind, late_wait, direction, name, hold=True)) == (direction == "write")
