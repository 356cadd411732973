"""Replays of recorded calls: exact counts, and bytes that are compared behind every one of them."""

from typing import Any

import pytest
import torch

from bench.pools import raw
from bench.replay import FLAT, Recorded, Recording, Replay, WrongReplayError
from bench.staged_cache import Call
from kvstage import Stats, ThreadDevice

WIDTHS = [512, 257]
TOKEN_BYTES = 1538


def rows(number: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    return tuple(
        torch.randint(0, 2**15, (number, width), generator=generator, dtype=torch.int16).view(torch.bfloat16) for width in WIDTHS
    )


def step(history: int, tokens: int) -> Recorded:
    calls = []
    for cache in range(2):
        calls += [Call("read", cache, 0, history)] if history else []
        calls.append(Call("write", cache, history, history + tokens))
    return Recorded(history, tokens, tuple(calls), (1.0,))


def recording(*steps: Recorded) -> Recording:
    return Recording("a leg", steps, steps[0].history, rows(steps[-1].history + steps[-1].tokens), 1.0)


CHUNKS = recording(step(0, 40), step(40, 40), step(80, 10))
"""Reads 40 and 80 rows of each cache and writes 40, 40 and 10: runs in 2 and 3 blocks, and in 2, 2 and 1."""
DECODE = recording(step(8192, 1))
MOVED = (40 + 80 + 90) * TOKEN_BYTES


@pytest.mark.parametrize(
    ("scheme", "stats"),
    [
        ("per_row", Stats(420, 420, MOVED, 0)),
        ("per_block", Stats(2 * 10, 2 * 10, MOVED, 0)),
        ("direct", Stats(2 * 10, 2 * 5, MOVED, 0)),
        ("gather_pinned", Stats(0, 2 * 5, MOVED, 2 * 5)),
        (FLAT, Stats(3, 3, MOVED, 0)),
    ],
)
def test_a_replay_asks_for_exactly_what_its_steps_need(scheme: str, stats: Stats) -> None:
    with ThreadDevice() as device:
        sample = Replay(device, WIDTHS, 90).run(CHUNKS, scheme)
    assert sample.stats == stats
    assert len(sample.seconds) == len(sample.waiting) == 3
    assert all(0 <= waiting < seconds for waiting, seconds in zip(sample.waiting, sample.seconds, strict=True))


@pytest.mark.parametrize(("scheme", "read"), [("per_row", 180_224), ("per_block", 5_632)])
def test_a_history_of_8192_rows_in_all_22_caches(scheme: str, read: int) -> None:
    """One of the eleven layers is staged here: its two caches, and one more row of each that the step writes."""
    with ThreadDevice() as device:
        stats = Replay(device, WIDTHS, 8193).run(DECODE, scheme).stats
    assert (11 * (stats.copies - 2), 11 * (stats.waits - 2)) == (read, read)


@pytest.mark.parametrize("scheme", ["per_row", "per_block", "direct", "gather_pinned"])
def test_a_wait_that_is_missing_stops_the_measurement(scheme: str, forgetful: Any) -> None:
    with pytest.raises(WrongReplayError, match=f"a leg, {scheme}, .*cache 0.* are not the forward pass's: its time is not told"):
        Replay(forgetful, WIDTHS, 90).run(CHUNKS, scheme)


def test_one_byte_that_a_leg_did_not_have_to_touch_stops_it_too() -> None:
    class Careless(ThreadDevice):
        """Spoils the last byte of the pool that it copies to: a spare block's, as the table has it."""

        def copy(self, stream: str, source: Any, target: Any) -> None:
            super().copy(stream, source, target)
            pool = target.base if target.base is not None else target
            if pool.ndim == 3 and pool.shape[1] == 32:
                pool[spare, -1, -1] ^= 1

    with Careless() as device:
        replay = Replay(device, WIDTHS, 90)
        pool, table = replay._caches[0].pool, replay._caches[0].table
        spare = next(block for block in range(pool.num_blocks) if block not in table)
        with pytest.raises(WrongReplayError, match=r"pool 'cache 0': 1 of \d+ bytes"):
            replay.run(recording(step(0, 1)), "direct")


def test_legs_leave_nothing_to_each_other() -> None:
    """A decode step behind a prefill finds its history, and a prefill behind a decode step an empty pool."""
    with ThreadDevice() as device:
        replay = Replay(device, WIDTHS, 90)
        for leg in (recording(step(64, 3)), CHUNKS, recording(step(64, 3))):
            replay.run(leg, "direct")
        assert bytes(raw(replay._caches[0].host[:64])) == bytes(raw(rows(67)[0][:64]))
