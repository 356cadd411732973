"""`python -m bench prefill` at a small size: counts and verification. No time is asserted."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as command
from bench import legs, prefill
from bench.legs import block_loop, block_loop_of_writes, row_loop
from kvstage import ThreadDevice
from kvstage.devices.host_kernels import Bytes
from tests.support.drift import Watch
from tests.support.tiers import often

TOKENS = 250
"""Seven blocks of 32 rows and one of 26."""
ROWS, BLOCKS = 22 * 250, 22 * 8
CACHE_BYTES = 11 * TOKENS * 1538
POOL_BYTES = 11 * (8 + 9) * 32 * 1538
"""Of the pools that a write fills, the nine spare blocks of each included."""


def test_every_leg_is_counted_and_verified_and_told_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str], watch: Watch) -> None:
    file = tmp_path / "prefill.json"
    assert prefill.main(["--tokens", str(TOKENS), "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    found = {leg["leg"]: (leg["copies"], leg["waits"], leg["verified_bytes"]) for leg in report["legs"]}
    assert found == {
        "one flat copy": (1, 1, CACHE_BYTES),
        "per_row read, by hand": (ROWS, ROWS, CACHE_BYTES),
        "per_row read, library": (ROWS, ROWS, CACHE_BYTES),
        "per_row write, by hand": (ROWS, ROWS, POOL_BYTES),
        "per_row write, library": (ROWS, ROWS, POOL_BYTES),
        "per_block read, by hand": (BLOCKS, BLOCKS, CACHE_BYTES),
        "per_block read, library": (BLOCKS, BLOCKS, CACHE_BYTES),
        "per_block write, by hand": (BLOCKS, BLOCKS, POOL_BYTES),
        "per_block write, library": (BLOCKS, BLOCKS, POOL_BYTES),
    }
    assert (report["version"], report["benchmark"]) == (1, "prefill")
    assert watch.compared > 3 * BLOCKS, "the library runs its schemes here, too"
    assert report["input"] == {"tokens": TOKENS, "caches": 22, "block_size": 32, "bytes": CACHE_BYTES}
    assert report["machine"]["torch_threads"] == 1
    assert set(report["row_to_block"]) == {f"{way}, {by}" for way in ("read", "write") for by in ("by hand", "library")}
    assert set(report["library_to_hand"]) == {f"{scheme} {way}" for scheme in legs.SCHEMES for way in ("read", "write")}
    assert report["operation_microseconds"].keys() == {"per_row", "ring"}
    assert [len(leg["rounds"]) for leg in report["legs"]] == [3, *[2] * 4, *[3] * 4]
    lines = capsys.readouterr().out.splitlines()
    for name, (copies, waits, _) in found.items():
        assert any(line.startswith(name) and line.split()[-4:-2] == [str(copies), str(waits)] for line in lines), name


def without_waits(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, out: Bytes) -> None:
    """The loop that forgets to synchronize, on a device that is sure to be late."""
    with device.hold(lambda stream, index: True):
        for row in range(len(out)):
            device.copy(legs.STREAM, pool[table[row // 32], row % 32 : row % 32 + 1], stage[:1])
            device.host_copy(stage[:1], out[row : row + 1])
    device.synchronize(legs.STREAM)


def one_bit_off(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, out: Bytes) -> None:
    block_loop(device, pool, table, stage, out)
    out[-1, -1] ^= 1


def written_once(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, rows: Bytes) -> None:
    block_loop_of_writes(device, pool, table[:1] * len(table), stage, rows)


def wrong_order(device: ThreadDevice, pool: Bytes, table: list[int], stage: Bytes, out: Bytes) -> None:
    row_loop(device, pool, sorted(table), stage, out)


@pytest.mark.parametrize(
    ("name", "loop", "message"),
    often(
        [
            ("row_loop", without_waits, "per_row read, by hand: "),
            ("row_loop", wrong_order, "per_row read, by hand: "),
            ("block_loop_of_writes", written_once, "per_block write, by hand: "),
            ("row_loop_of_writes", written_once, "per_row write, by hand: "),
            ("block_loop", one_bit_off, f"per_block read, by hand: 1 of {TOKENS * 1024} bytes of cache 0 are wrong"),
        ],
        1,
    ),
)
def test_a_loop_that_moves_wrong_bytes_is_never_timed(
    name: str, loop: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, name, loop)
    monkeypatch.setattr(prefill, "_seconds", lambda run: pytest.fail("timed"))
    file = tmp_path / "prefill.json"
    assert prefill.main(["--tokens", str(TOKENS), "--json", str(file)]) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert "nothing was timed" in output.err
    assert output.out == ""
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a benchmark"),
        (["pre"], "no benchmark is called 'pre'"),
        (["prefill", "--tokens", "0"], "--tokens is 0: a prefill has at least one token"),
        (["prefill", "--tokens", "few"], "invalid int value: 'few'"),
        (["prefill", "--json", "/nowhere/x.json"], "--json /nowhere/x.json: no file can be written there"),
        (["prefill", "--rounds", "5"], "unrecognized arguments: --rounds 5"),
    ],
)
def test_a_usage_error_is_named_before_any_work(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "forward_caches", lambda tokens: pytest.fail("worked"))
    with pytest.raises(SystemExit) as stop:
        sys.exit(command.main(arguments))
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_without_transformers_the_message_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SystemExit) as stop:
        prefill.main(["--tokens", "1"])
    assert stop.value.code == 2
    assert "pip install 'kvstage[transformers]'" in capsys.readouterr().err


def test_the_command_lists_its_benchmarks() -> None:
    root = Path(command.__file__).parents[1]
    shown = subprocess.run([sys.executable, "-m", "bench", "--help"], cwd=root, capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    assert "prefill" in shown.stdout
    for name, what in command.BENCHMARKS.items():
        assert f"  {name:13}{what}\n" in shown.stdout, "one column, behind the longest name"
