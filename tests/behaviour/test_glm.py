"""The library on the caches of a real GLM-5.3-Flash prefill of 8192 tokens: bytes and counts, by both schemes."""

from typing import TYPE_CHECKING

import pytest
import torch

from bench.pools import empty_pool, filled_pool, raw, same_bytes
from kvstage import OpenCLDevice, PagedPool, Stager, ThreadDevice

if TYPE_CHECKING:
    from bench.glm import Cache

pytestmark = pytest.mark.extended

TOKENS = 8192
TOTAL = [("per_row", 180_224), ("per_block", 5_632)]
"""Copies, and as many waits, over 22 caches: 22 * 8192 rows, and 22 * 256 blocks of 32."""


def test_the_input_is_what_the_counts_are_about(glm_caches: "tuple[Cache, ...]") -> None:
    assert len(glm_caches) == 22
    assert {(cache.kind, tuple(cache.rows.shape)) for cache in glm_caches} == {
        ("latent", (TOKENS, 512)),
        ("indexer", (TOKENS, 257)),
    }
    assert sum(len(raw(cache.rows)) for cache in glm_caches) == 11 * TOKENS * 1538


@pytest.mark.parametrize(("scheme", "total"), TOTAL)
def test_a_read_gives_the_forward_passs_own_bytes(scheme: str, total: int, glm_caches: "tuple[Cache, ...]") -> None:
    copies = waits = 0
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        for seed, cache in enumerate(glm_caches):
            pool = filled_pool(cache.rows, seed)
            before = pool.tensor.clone()
            transfer = stager.read(PagedPool(pool.tensor), pool.table, 0, TOKENS)
            transfer.wait()
            assert same_bytes(transfer.result(), cache.rows)
            assert same_bytes(pool.tensor, before)  # a read changes nothing
            assert transfer.stats.bytes == len(raw(cache.rows))
            copies, waits = copies + transfer.stats.copies, waits + transfer.stats.waits
        assert (device.copies, device.waits) == (total, total)
    assert (copies, waits) == (total, total)


@pytest.mark.parametrize(("scheme", "total"), TOTAL)
def test_a_write_fills_its_blocks_and_no_other(scheme: str, total: int, glm_caches: "tuple[Cache, ...]") -> None:
    copies = waits = 0
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        for seed, cache in enumerate(glm_caches):
            pool = empty_pool(TOKENS, cache.rows.shape[1], seed)
            transfer = stager.write(PagedPool(pool.tensor), pool.table, 0, cache.rows)
            transfer.wait()
            assert same_bytes(pool.tensor, filled_pool(cache.rows, seed).tensor)  # blocks that no table names included
            copies, waits = copies + transfer.stats.copies, waits + transfer.stats.waits
        assert (device.copies, device.waits) == (total, total)
    assert (copies, waits) == (total, total)


@pytest.mark.parametrize(("scheme", "calls"), [("per_row", 80), ("per_block", 4)])
def test_a_chunk_appends_to_a_history_and_changes_nothing_before_it(
    scheme: str, calls: int, glm_caches: "tuple[Cache, ...]"
) -> None:
    """Rows [8090, 8170) of one latent and one indexer cache: parts of the first and the last block, two whole ones."""
    for seed, cache in enumerate(glm_caches[:2]):
        history = cache.rows.clone()
        raw(history[8090:]).fill_(0xA5)
        pool, written = filled_pool(history, seed), history.clone()
        written[8090:8170] = cache.rows[8090:8170]
        with ThreadDevice() as device:
            Stager(device, scheme=scheme).write(PagedPool(pool.tensor), pool.table, 8090, cache.rows[8090:8170]).wait()
            assert (device.copies, device.waits) == (calls, calls)
        assert same_bytes(pool.tensor, filled_pool(written, seed).tensor)


@pytest.mark.parametrize("scheme", ["per_row", "per_block"])
def test_a_fresh_sequence_touches_no_page(scheme: str, glm_caches: "tuple[Cache, ...]") -> None:
    with ThreadDevice() as device:
        stager = Stager(device, scheme=scheme)
        for seed, cache in enumerate(glm_caches):
            pool = filled_pool(cache.rows[:64], seed)
            before = pool.tensor.clone()
            read = stager.read(PagedPool(pool.tensor), [], 0, 0)
            read.wait()
            assert read.result().shape == (0, cache.rows.shape[1])
            stager.write(PagedPool(pool.tensor), [], 0, torch.empty(0, cache.rows.shape[1], dtype=torch.bfloat16)).wait()
            assert same_bytes(pool.tensor, before)
        assert (device.copies, device.waits) == (0, 0)


def test_a_wait_that_is_missing_gives_other_bytes(glm_caches: "tuple[Cache, ...]") -> None:
    """The comparison above would see it: the device is as late as a device may be, and does not wait when it is asked to."""

    class Forgetful(ThreadDevice):
        def synchronize(self, stream: str) -> None:
            self.waits += 1

    rows = glm_caches[0].rows
    pool = filled_pool(rows, 0)
    with Forgetful() as device, device.hold(lambda stream, index: True):
        transfer = Stager(device, scheme="per_block").read(PagedPool(pool.tensor), pool.table, 0, TOKENS)
        transfer.wait()
        assert (device.copies, device.waits) == (256, 256)
        assert not same_bytes(transfer.result(), rows)


@pytest.mark.parametrize("scheme", ["gather_pinned", "ring"])
def test_an_independent_driver_gives_the_forward_passs_own_bytes(scheme: str, glm_caches: "tuple[Cache, ...]") -> None:
    """One latent and one indexer cache on PoCL: written into an empty pool, and read out of it."""
    with OpenCLDevice() as device:
        stager = Stager(device, scheme=scheme)
        for seed, cache in enumerate(glm_caches[:2]):
            pool = empty_pool(TOKENS, cache.rows.shape[1], seed)
            stager.write(PagedPool(pool.tensor), pool.table, 0, cache.rows).wait()
            assert same_bytes(pool.tensor, filled_pool(cache.rows, seed).tensor)
            read = stager.read(PagedPool(pool.tensor), pool.table, 0, TOKENS)
            read.wait()
            assert same_bytes(read.result(), cache.rows)
        assert (device.copies, device.launches) == ((0, 4) if scheme == "gather_pinned" else (1024, 0))
