"""The layouts that serving engines use: strides, row widths, dtypes, block sizes, planar pages; each against the definition."""

import pytest
import torch

from kvstage import HostDevice, LayoutError, PagedPool, Stager, ThreadDevice
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import Blocks, plain_read, plain_write, random_blocks, random_bytes, random_rows, same

SCHEMES = sorted(LIBRARY)
WIDTHS = [132, 304, 368, 432, 514, 528, 576, 584, 592, 656, 1024, 1028, 1152, 2048]
"""Bytes of a row in public engines' caches; 514 is aligned to 2 bytes only."""
BLOCK_SIZES = [1, 2, 4, 16, 32, 64, 128, 256, 640, 1152, 2304]
DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8]


def there_and_back(device, scheme: str, blocks: Blocks, table: list[int], start: int, stop: int) -> None:
    """A read, a write of other rows, both compared with every byte of the definition."""
    tensor = blocks.tensor
    pool, stager = PagedPool(tensor), Stager(device, scheme=scheme)
    read = stager.read(pool, table, start, stop)
    read.wait()
    assert same(read.result(), plain_read(tensor, table, start, stop))
    rows = random_rows(7, stop - start, tuple(tensor.shape[2:]), tensor.dtype)
    after = plain_write(blocks, table, start, rows)
    stager.write(pool, table, start, rows).wait()
    assert same(blocks.base, after)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_row_width(device, scheme, width):
    there_and_back(device, scheme, random_blocks(width, 5, 8, (width,), torch.uint8), [3, 0, 4], 3, 21)


@pytest.mark.parametrize("size", BLOCK_SIZES)
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "per_row"])
def test_every_block_size(device, scheme, size):
    there_and_back(device, scheme, random_blocks(size, 4, size, (6,), torch.bfloat16), [2, 0, 3], size // 2, 3 * size - size // 3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_dtype_with_every_bit_pattern(device, scheme, dtype):
    there_and_back(device, scheme, random_blocks(5, 6, 4, (64,), dtype), [5, 1, 0, 3], 1, 15)


def cross_layer(layer: int) -> Blocks:
    """Blocks outermost, the layers of a model inside: [blocks, layers, size, row], of which one layer is staged."""
    base = random_bytes(layer, 5, 3, 4, 6 * 2)
    return Blocks(base, base.view(torch.bfloat16)[:, layer])


def packed_caches() -> Blocks:
    """Two caches side by side in each block: [blocks, latent and indexer], of which the second is staged."""
    base = random_bytes(9, 5, 4 * 24 + 4 * 10)
    return Blocks(base, base[:, 4 * 24 :].view(torch.bfloat16).unflatten(1, (4, 5)))


LAYOUTS = {
    "packed": lambda: random_blocks(1, 5, 4, (5,), torch.bfloat16),
    "padded": lambda: random_blocks(2, 5, 4, (5,), torch.bfloat16, padding=3),
    "padded by a block": lambda: random_blocks(3, 5, 4, (5,), torch.bfloat16, padding=20),
    "one layer of three": lambda: cross_layer(1),
    "the second of two caches": packed_caches,
    "every other block": lambda: every_other(),
}


def every_other() -> Blocks:
    blocks = random_blocks(4, 10, 4, (5,), torch.bfloat16)
    return Blocks(blocks.base, blocks.tensor[1::2])


def plain_after(blocks: Blocks, table: list[int], start: int, rows: torch.Tensor) -> torch.Tensor:
    """All memory after a write, by indexing a copy of it with the same strides."""
    copied = blocks.base.clone()
    origin = blocks.tensor.storage_offset()
    view = copied.view(-1).view(rows.dtype).as_strided(blocks.tensor.shape, blocks.tensor.stride(), origin)
    for k, row in enumerate(rows):
        view[table[(start + k) // view.shape[1]], (start + k) % view.shape[1]] = row
    return copied


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("make", [ThreadDevice, HostDevice])
def test_every_block_stride(make, scheme, layout):
    blocks, table = LAYOUTS[layout](), [3, 0, 4]
    rows = random_rows(6, 9, tuple(blocks.tensor.shape[2:]), torch.bfloat16)
    with make() as device:
        pool, stager = PagedPool(blocks.tensor), Stager(device, scheme=scheme)
        read = stager.read(pool, table, 2, 11)
        read.wait()
        assert same(read.result(), plain_read(blocks.tensor, table, 2, 11))
        after = plain_after(blocks, table, 2, rows)
        stager.write(pool, table, 2, rows).wait()
        assert same(blocks.base, after)


def planar_page(keys: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """One page of an indexer cache: the keys of all its rows, then their scales."""
    return torch.cat([keys.flatten(), scales.flatten()])


def test_a_planar_page_is_one_row_and_goes_whole(device):
    """Its rows are two spans each, so they can't be staged one by one: pages as rows of a pool with blocks of 1 can."""
    size, pages = 4, 6
    keys, scales = random_bytes(1, pages, size, 128), random_bytes(2, pages, size, 4)
    tensor = torch.stack([planar_page(*page) for page in zip(keys, scales, strict=True)])
    pool, table = PagedPool(tensor.unsqueeze(1)), [4, 1, 5]
    read = Stager(device, scheme="direct").read(pool, table, 0, 3)
    read.wait()
    staged = read.result()
    assert same(staged[:, : size * 128].reshape(3, size, 128), keys[table])
    assert same(staged[:, size * 128 :].reshape(3, size, 4), scales[table])


def test_twin_rows_of_a_planar_page_are_not_what_they_seem(device):
    """Taken for [size, 132] the page gives rows that mix keys of different rows."""
    keys, scales = random_bytes(1, 4, 128), random_bytes(2, 4, 4)
    wrong = PagedPool(planar_page(keys, scales).view(1, 4, 132))
    read = Stager(device, scheme="direct").read(wrong, [0], 1, 2)
    read.wait()
    assert not torch.equal(read.result()[0, :128], keys[1])


def test_rows_that_do_not_lie_side_by_side_are_refused():
    for tensor in (torch.zeros(3, 4, 10)[:, :, :5], torch.zeros(3, 5, 4).transpose(1, 2), torch.zeros(2, 3, 4, 5)[:, :, ::2]):
        with pytest.raises(LayoutError, match="must lie side by side"):
            PagedPool(tensor)
