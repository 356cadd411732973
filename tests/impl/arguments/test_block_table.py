"""The blocks of the last call are taken again where they are the same, and looked at anew wherever they are not."""

import re
from array import array
from collections import UserList

import numpy as np
import pytest
import torch

from kvstage import BlockIdError, DuplicateBlockError, PagedPool
from kvstage.arguments.block_table import touched_blocks

POOL = PagedPool(torch.zeros(9, 4, 2))
IDS = [7, 0, 8, 3]
SAME = {
    "list": list(IDS),
    "tuple": tuple(IDS),
    "array of bytes": array("B", IDS),
    "bytearray": bytearray(IDS),
    "memoryview": memoryview(bytes(IDS)),
    "sequence": UserList(IDS),
    "numbers of numpy": list(np.array(IDS, np.int16)),
    "numpy int32": np.array(IDS, np.int32),
    "numpy, backwards": np.array(IDS[::-1])[::-1],
    "torch int32": torch.tensor(IDS, dtype=torch.int32),
    "torch, strided": torch.tensor([IDS, IDS]).T.contiguous()[:, 1],
    "padded": [*IDS, -1, 99],
}


def touched(table, last=None, pool=POOL, start=1, stop=15, distinct=False):
    return touched_blocks(pool, table, start, stop, distinct=distinct, last=last)


@pytest.mark.parametrize("kind", SAME)
def test_every_kind_of_table_names_the_blocks_that_it_lists_and_is_known_again(kind):
    found, last = touched(SAME[kind]), touched(IDS)
    assert [found(k) for k in range(4)] == found(np.arange(4)).tolist() == IDS
    assert touched(SAME[kind], last) is last
    assert touched(IDS, found) is found


@pytest.mark.parametrize("make", [list, np.array, torch.tensor])
def test_a_table_that_was_changed_in_place_is_another_one(make):
    table = make(IDS)
    last = touched(table)
    table[2] = 5
    found = touched(table, last)
    assert [found(k) for k in range(4)] == [7, 0, 5, 3]
    table[2] = 9
    with pytest.raises(BlockIdError, match="entry 2 is 9, and the pool has blocks 0 to 8"):
        touched(table, found)


@pytest.mark.parametrize("wrong", [0.0, np.float32(0), "0", None, 2**63, 2**70, -1, 9])
def test_what_is_no_block_is_refused_although_the_last_table_was_right(wrong):
    last = touched(IDS)
    with pytest.raises(BlockIdError, match=re.escape(f"entry 1 is {wrong!r}")):
        touched([7, wrong, 8, 3], last)


@pytest.mark.parametrize("other", [{"start": 5, "stop": 16}, {"stop": 12}, {"pool": PagedPool(torch.zeros(10, 4, 2))}])
def test_the_same_table_for_other_blocks_or_another_pool_is_looked_at_anew(other):
    last = touched(IDS)
    found = touched(IDS, last, **other)
    assert found is not last
    assert found.num_blocks == other.get("pool", POOL).num_blocks
    assert found.ids.tolist() == IDS[found.first : found.first + len(found.ids)]


def test_a_smaller_pool_refuses_what_a_larger_one_took():
    with pytest.raises(BlockIdError, match="entry 2 is 8"):
        touched(IDS, touched(IDS), pool=PagedPool(torch.zeros(8, 4, 2)))


def test_a_write_looks_for_duplicates_that_a_read_may_have():
    table = [7, 0, 7, 3]
    last = touched(table)
    with pytest.raises(DuplicateBlockError, match="block 7 is both entry 0 and entry 2"):
        touched(table, last, distinct=True)
    known = touched(IDS, distinct=True)
    assert touched(IDS, known) is known
    read = touched(IDS)
    assert touched(IDS, read, distinct=True) is not read
