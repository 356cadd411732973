"""Which bytes a tensor has, against counting them; and memory that is lent and comes back."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from kvstage.checked.byte_runs import byte_runs, runs
from kvstage.checked.memory import FREED, MemoryRegion, MemoryRegions
from kvstage_model.language.buffers import Memory

BASE = torch.zeros(6, 5, 4, dtype=torch.int16)
SHAPES = {
    "whole": BASE,
    "a block": BASE[2],
    "rows with gaps": BASE[:, 1:3],
    "every other block": BASE[::2],
    "a column": BASE[:, :, 1],
    "turned around": BASE.permute(2, 0, 1),
    "one element": BASE[3, 2, 1],
    "bytes": BASE.view(torch.uint8)[1:3, :, 2:6],
    "expanded": BASE[0, 0].expand(3, 4),
    "overlapping itself": BASE.as_strided((4, 3), (1, 2), 5),
    "interleaved": BASE.view(-1).as_strided((2, 3), (1, 4), 2),
    "empty": BASE[:, 2:2],
}


def counted(tensor: torch.Tensor) -> set[int]:
    """Every byte of every element, from the definition of strides."""
    size, found = tensor.element_size(), set()
    for index in product(*map(range, tensor.shape)):
        start = tensor.data_ptr() + sum(at * step for at, step in zip(index, tensor.stride(), strict=True)) * size
        found.update(range(start, start + size))
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_the_runs_of_a_tensor_are_its_bytes(name: str) -> None:
    found = byte_runs(SHAPES[name])
    listed = [at for rows in found for at in range(rows.start, rows.start + rows.count)]
    assert set(listed) == counted(SHAPES[name])
    assert len(listed) == len(set(listed)), "no byte twice"
    assert all(one.start + one.count < two.start for one, two in pairwise(found)), "in order, not touching"


def test_neighbouring_pieces_are_one_run() -> None:
    found = runs(np.array([30, 0, 10, 10, 22]), 10)
    assert [(rows.start, rows.count) for rows in found] == [(0, 20), (22, 18)]
    assert runs(np.array([], np.int64), 4) == ()


def lend(regions: MemoryRegions, freed: list[MemoryRegion]) -> torch.Tensor:
    return regions.allocate(Memory.PINNED, 8, 0xA5, None, lambda region: not freed.append(region))[0]


def test_lent_memory_is_filled_and_comes_back_when_its_last_user_goes() -> None:
    regions, freed = MemoryRegions(), list[MemoryRegion]()
    tensor = lend(regions, freed)
    assert tensor.tolist() == [0xA5] * 8
    region = regions.find(tensor.data_ptr(), 8)
    view, mirror = tensor.view(torch.int32)[1:], regions.mirror(tensor)
    del tensor
    array = view.numpy()
    del view
    assert not freed, "an array still has it"
    array[0] = 0x01020304
    assert mirror.tobytes() == bytes([0xA5] * 4) + (0x01020304).to_bytes(4, "little")
    del array
    assert freed == [region]
    assert mirror.tolist() == [FREED] * 8, "a mirror does not keep it"


def test_memory_is_known_by_its_bytes() -> None:
    regions, known, other = MemoryRegions(), torch.zeros(4, 3), torch.zeros(4, 3)
    regions.meet(Memory.PAGEABLE, known[1], None)
    regions.meet(Memory.PAGEABLE, known, None)
    assert regions.knows(known[3:])
    assert not regions.knows(other)
    assert not regions.knows(known[4:])
    assert regions.find(known.data_ptr(), 48) is regions.find(known[2].data_ptr(), 4)
    assert regions.find(known.data_ptr(), 49) is None


def test_a_mirror_is_the_tensor_as_an_array() -> None:
    regions, pool = MemoryRegions(), torch.arange(48, dtype=torch.uint8).view(2, 4, 6)
    regions.meet(Memory.DEVICE, pool, None)
    part = pool[:, 1:3, 2:4]
    assert np.array_equal(regions.mirror(part), part.numpy())
    regions.mirror(part)[1, 0, 0] = 200
    assert pool[1, 1, 2] == 200
    assert regions.mirror(pool[:, :0]).shape == (2, 0, 6)
