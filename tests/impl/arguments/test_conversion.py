"""bf16 to f32 and back at the host: every bit pattern, against the definition."""

import pytest
import torch

from kvstage import LayoutError, PagedPool, Stager, ThreadDevice
from kvstage.arguments.conversion import to_bfloat16, to_float32
from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.registry import LIBRARY
from tests.support.allocations import CountingDevice
from tests.support.plain import plain_read, plain_write, random_blocks, raw, same

TABLE = [3, 0, 4]
EVERY = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
"""All bit patterns of bf16."""


def everything(_stream: str, _index: int) -> bool:
    return True


def rounded(bits: int) -> int:
    """The bf16 bits for f32 bits: the nearest, ties to even; a NaN keeps its sign and upper payload, and stays a NaN."""
    sign, magnitude = bits >> 31 << 15, bits & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        upper = magnitude >> 16
        return sign | (upper if upper > 0x7F80 else 0x7FC0)
    lower, upper = magnitude & 0xFFFF, magnitude >> 16
    up = lower > 0x8000 or (lower == 0x8000 and upper & 1)
    return sign | upper + up


def f32(bits: list[int]) -> torch.Tensor:
    return torch.tensor(bits, dtype=torch.int64).to(torch.int32).view(torch.float32)


def test_every_bf16_is_exact_in_f32_and_comes_back_bit_by_bit():
    for first in (0, 1, 5):  # as it falls on vector registers, and beside them
        bits = EVERY[first:]
        wide, back = torch.empty(len(bits)), torch.empty(len(bits), dtype=torch.bfloat16)
        to_float32(bits.view(torch.bfloat16), wide)
        assert torch.equal(wide.view(torch.int32), bits.to(torch.int32) << 16)
        to_bfloat16(wide, back)
        assert torch.equal(back.view(torch.int16), bits)
    assert EVERY.view(torch.bfloat16).isnan().sum() == 2 * 127


def test_twin_torch_alone_loses_the_payloads():
    wide = (EVERY.to(torch.int32) << 16).view(torch.float32)
    back = wide.to(torch.bfloat16).view(torch.int16)
    assert not torch.equal(back, EVERY)


def test_numbers_are_rounded_to_the_nearest_even_and_nans_keep_what_there_is_room_for():
    edges = [0x0000, 0x0001, 0x007F, 0x0080, 0x3F80, 0x3F81, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FBF, 0x7FC0, 0x7FFF]
    lows = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFF]
    bits = [sign << 31 | upper << 16 | low for sign in (0, 1) for upper in edges for low in lows]
    for count in (1, len(bits)):
        for first in range(0, len(bits), count):
            part = bits[first : first + count]
            target = torch.empty(len(part), dtype=torch.bfloat16)
            to_bfloat16(f32(part), target)
            assert [each & 0xFFFF for each in target.view(torch.int16).tolist()] == [rounded(each) for each in part]
    random = torch.randint(-(2**31), 2**31, (5000,), generator=torch.Generator().manual_seed(0)).to(torch.int32)
    target = torch.empty(5000, dtype=torch.bfloat16)
    to_bfloat16(random.view(torch.float32), target)
    assert [each & 0xFFFF for each in target.view(torch.int16).tolist()] == [rounded(each & 0xFFFFFFFF) for each in random.tolist()]


@pytest.mark.parametrize("scheme", sorted(LIBRARY))
@pytest.mark.parametrize("own_out", [True, False])
def test_reads_and_writes_convert_where_they_are_asked_to(device, scheme, own_out):
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)
    out = torch.zeros(9, 3) if own_out else None
    expected = plain_read(blocks.tensor, TABLE, 2, 11)
    read = stager.read(pool, TABLE, 2, 11, out=out, dtype=torch.float32)
    read.wait()
    assert read.result().dtype == torch.float32
    assert torch.equal(raw(read.result()), raw((expected.view(torch.int16).to(torch.int32) << 16).view(torch.float32)))
    assert out is None or read.result().data_ptr() == out.data_ptr()

    rows = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
    after = plain_write(blocks, TABLE, 3, rows.to(torch.bfloat16))
    stager.write(pool, TABLE, 3, rows, dtype=torch.float32).wait()
    assert same(blocks.base, after)
    assert read.stats.bytes % (9 * 3 * 2) == 0, "bf16 rows moved"


def test_a_converted_result_appears_with_the_wait_and_a_write_has_done_with_its_rows_at_once():
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    rows = torch.randn(6, 3)
    after = plain_write(blocks, TABLE, 3, rows.to(torch.bfloat16))
    out = torch.full((9, 3), 7.0)
    with ThreadDevice() as device, device.hold(everything):
        stager, pool = Stager(device, scheme="direct"), PagedPool(blocks.tensor)
        write = stager.write(pool, TABLE, 3, rows, dtype=torch.float32)
        rows.fill_(0)
        write.wait()
        assert same(blocks.base, after)
        read = stager.read(pool, TABLE, 2, 11, out=out, dtype=torch.float32)
        assert out.eq(7).all()
        read.wait()
        assert torch.equal(raw(out), raw(plain_read(blocks.tensor, TABLE, 2, 11).float()))


def test_conversion_borrows_memory_and_gives_it_back():
    pool = PagedPool(random_blocks(1, 5, 4, (3,), torch.bfloat16).tensor)
    with CountingDevice() as device:
        stager = Stager(device, scheme="direct")
        for _ in range(4):
            stager.write(pool, TABLE, 0, torch.ones(9, 3), dtype=torch.float32).wait()
            read = stager.read(pool, TABLE, 0, 9, dtype=torch.float32)
            read.wait()
            read.release()
        assert [memory for memory, _ in device.allocated] == [Memory.PINNED, Memory.PAGEABLE], "the rows moved, and the result"


def test_other_conversions_are_refused(device):
    stager = Stager(device, scheme="direct")
    pool, half = PagedPool(torch.zeros(5, 4, 3, dtype=torch.bfloat16)), PagedPool(torch.zeros(5, 4, 3, dtype=torch.float16))
    for bad, dtype in ((pool, torch.float16), (half, torch.float32), (pool, torch.float64)):
        with pytest.raises(LayoutError, match="bfloat16 pools to and from float32 only"):
            stager.read(bad, TABLE, 0, 8, dtype=dtype)
        with pytest.raises(LayoutError, match="float32 only"):
            stager.write(bad, TABLE, 0, torch.zeros(8, 3, dtype=dtype), dtype=dtype)
    with pytest.raises(LayoutError, match=r"out is torch.bfloat16 and dtype=torch.float32 was asked for"):
        stager.read(pool, TABLE, 0, 8, out=torch.zeros(8, 3, dtype=torch.bfloat16), dtype=torch.float32)
    with pytest.raises(LayoutError, match=r"rows is torch.float32 and the pool is torch.bfloat16.*dtype=torch.float32"):
        stager.write(pool, TABLE, 0, torch.zeros(8, 3))
    stager.read(half, TABLE, 0, 8, dtype=torch.float16).wait()  # its own dtype is none
