"""Autograd, inference mode, default devices, threads: what a call does under each, as the Stager's page says."""

import mmap
from contextlib import nullcontext
from threading import Barrier, Thread

import pytest
import torch

from kvstage import PagedPool, Stager, ThreadDevice
from kvstage_model.schemes.registry import LIBRARY
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

SCHEMES = sorted(LIBRARY)
TABLE = [3, 0, 4]
MODES = {
    "grad": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "meta by default": lambda: torch.device("meta"),
    "plain": nullcontext,
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("mode", MODES)
def test_results_are_ordinary_tensors_in_every_mode_and_are_used_again_in_every_other(device, scheme, mode):
    blocks, rows = random_blocks(1, 5, 4, (3,), torch.bfloat16), torch.ones(9, 3, dtype=torch.bfloat16)
    stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)
    for now in (mode, "plain", mode):
        expected = plain_read(blocks.tensor, TABLE, 2, 11)
        with MODES[now]():
            read = stager.read(pool, TABLE, 2, 11)
            read.wait()
            wide = stager.read(pool, TABLE, 2, 11, dtype=torch.float32)
            wide.wait()
            stager.write(pool, TABLE, 2, rows).wait()
        for result in (read.result(), wide.result()):
            assert not result.is_inference()
            assert not result.requires_grad
            assert result.device.type == "cpu"
        assert same(read.result(), expected)
        read.result().add_(0)  # refused for inference tensors outside their mode
        for transfer in (read, wide):
            transfer.release()
        assert blocks.tensor[3, 2:].eq(1).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tensors_of_inference_mode_are_written_and_read_from_outside(device, scheme):
    with torch.inference_mode():
        tensor, out, wide = torch.zeros(2, 2, 3, dtype=torch.bfloat16), torch.zeros(4, 3, dtype=torch.bfloat16), torch.zeros(4, 3)
        rows = torch.ones(4, 3, dtype=torch.bfloat16)
    stager, pool = Stager(device, scheme=scheme), PagedPool(tensor)
    stager.write(pool, [1, 0], 0, rows).wait()
    stager.read(pool, [1, 0], 0, 4, out=out).wait()
    stager.read(pool, [1, 0], 0, 4, out=wide, dtype=torch.float32).wait()
    assert out.eq(1).all()
    assert wide.eq(1).all()


def test_a_result_takes_part_in_autograd_as_a_constant_that_the_caller_may_not_overwrite():
    weight = torch.ones(4, 3, requires_grad=True)
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme="direct"), PagedPool(torch.full((2, 2, 3), 2.0))
        read = stager.read(pool, [1, 0], 0, 4)
        read.wait()
        loss = (weight * read.result()).sum()
        kept = read.result()
        stager.read(pool, [1, 0], 0, 4, out=kept).wait()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_threads_with_transfers_of_their_own(scheme):
    """Each reads, writes and releases rows of its own sequence, many times: no rows of another's ever appear."""
    sequences = 4
    blocks = random_blocks(1, 3 * sequences, 4, (3,), torch.bfloat16)
    tables = [[3 * k + 2, 3 * k, 3 * k + 1] for k in range(sequences)]
    wrong, started = [], Barrier(sequences)
    with ThreadDevice() as device:
        stager, pool = Stager(device, scheme=scheme), PagedPool(blocks.tensor)

        def work(k: int) -> None:
            started.wait(timeout=20)
            for turn in range(12):
                rows = random_rows(100 * k + turn, 7, (3,), torch.bfloat16)
                write = stager.write(pool, tables[k], turn % 4, rows)
                read = stager.read(pool, tables[k], turn % 4, turn % 4 + 7)
                write.wait()
                read.wait()
                if not same(read.result(), rows):
                    wrong.append((k, turn))
                read.release()

        threads = [Thread(target=work, args=(k,)) for k in range(sequences)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        stager.close()
    assert not wrong
    expected = [plain_read(blocks.tensor, table, 0, 12) for table in tables]
    assert all(same(each[3 : 3 + 7], random_rows(100 * k + 11, 7, (3,), torch.bfloat16)) for k, each in enumerate(expected))


def test_one_transfer_waited_for_by_two_threads():
    blocks = random_blocks(1, 5, 4, (3,), torch.bfloat16)
    blocks.tensor.nan_to_num_()
    told = []
    with ThreadDevice() as device:
        stager = Stager(device, scheme="direct", on_transfer=told.append)
        with device.hold(lambda _stream, _index: True) as held:
            read = stager.read(PagedPool(blocks.tensor), TABLE, 2, 11, dtype=torch.float32)
            threads = [Thread(target=read.wait, kwargs={"timeout": 20}) for _ in range(2)]
            for thread in threads:
                thread.start()
            held.release()
            for thread in threads:
                thread.join(timeout=30)
        assert same(read.result(), plain_read(blocks.tensor, TABLE, 2, 11).float())
        assert len(told) == 1


def test_a_write_from_a_thread_without_grad_mode_is_seen_by_the_version_counter(device):
    tensor, rows = torch.zeros(2, 2, 3), torch.ones(4, 3)
    before = tensor._version
    thread = Thread(target=lambda: Stager(device, scheme="per_block").write(PagedPool(tensor), [1, 0], 0, rows).wait())
    thread.start()
    thread.join(timeout=20)
    assert tensor._version == before + 1
    assert same(tensor, torch.ones(2, 2, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch's sync-debug mode watches CUDA only, and there is no GPU here")
@pytest.mark.parametrize("scheme", ["direct", "gather_pinned"])
def test_no_call_synchronizes_under_torchs_own_watch(scheme):  # pragma: no cover
    from kvstage import AcceleratorDevice

    pool = PagedPool(torch.randn(8, 4, 16, device="cuda"))
    host = PagedPool(torch.zeros(8, 4, 16).pin_memory())
    rows, out = torch.randn(9, 16).pin_memory(), torch.zeros(9, 16).pin_memory()
    with AcceleratorDevice() as device:
        stager = Stager(device, scheme=scheme)
        stager.read(pool, TABLE, 0, 9, out=out).wait()
        torch.cuda.set_sync_debug_mode("error")
        try:
            transfers = [stager.write(pool, TABLE, 0, rows), stager.read(pool, TABLE, 0, 9, out=out)]
            transfers.append(stager.copy(pool, TABLE, host, TABLE))
            for transfer in transfers:
                transfer.wait_stream()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        for transfer in transfers:
            transfer.wait()
        assert same(out, rows)
        assert same(host.tensor[TABLE], pool.tensor[TABLE].cpu())


def test_rows_and_out_in_memory_of_the_callers_own_mapping(device):
    """Shared or file-backed memory: any CPU tensor will do, wherever it comes from."""
    with mmap.mmap(-1, 2 * 9 * 3 * 2) as memory:
        rows, out = torch.frombuffer(memory, dtype=torch.bfloat16).view(2, 9, 3)
        rows.copy_(random_rows(1, 9, (3,), torch.bfloat16).nan_to_num())
        blocks = random_blocks(2, 5, 4, (3,), torch.bfloat16)
        after = plain_write(blocks, TABLE, 2, rows)
        for scheme in SCHEMES:
            stager = Stager(device, scheme=scheme)
            stager.write(PagedPool(blocks.tensor), TABLE, 2, rows).wait()
            assert same(blocks.base, after)
            out.zero_()
            stager.read(PagedPool(blocks.tensor), TABLE, 2, 11, out=out).wait()
            assert same(out, rows)
            stager.close()
        del rows, out, stager
