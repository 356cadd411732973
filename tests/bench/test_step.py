"""`python -m bench step` at a tiny size: everything it says is in its JSON, and its counts are those of a definition."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as command
from bench import measure_step as module
from bench import step
from bench.devices import available
from bench.forward import DifferentError
from bench.measure_step import measure_step
from bench.replay import WrongReplayError
from bench.sizes import REAL, SMALL, Sizes
from bench.step_table import table

TOKENS = 128
ROOT = Path(command.__file__).parents[1]
STEPS = ["prefill in one piece", "prefill in chunks of 32", "prefill in chunks of 8", "decode at 128"]


@pytest.fixture(scope="module")
def report(tiny: Sizes) -> dict[str, Any]:
    found: dict[str, Any] = measure_step(replace(tiny, layers=4), TOKENS, available(), "OMP_WAIT_POLICY=told", rounds=2)
    return found


def blocks(start: int, stop: int) -> int:
    return (stop - 1) // 32 - start // 32 + 1


def defined(chunk: int) -> tuple[int, int, int, int]:
    """Rows read, rows written, blocks touched, and calls, of a prefill in chunks, for each of two caches."""
    reads = [(0, start) for start in range(chunk, TOKENS, chunk)]
    writes = [(start, start + chunk) for start in range(0, TOKENS, chunk)]
    touched = sum(blocks(*rows) for rows in reads + writes)
    return sum(stop for _, stop in reads), TOKENS, touched, len(reads + writes)


@pytest.mark.extended
def test_copies_waits_and_bytes_of_every_leg(report: dict[str, Any]) -> None:
    counts = [defined(128), defined(32), defined(8), (128, 1, 4 + 1, 2)]
    expected = {}
    for name, (read, written, touched, calls) in zip(STEPS, counts, strict=True):
        moved = (read + written) * 1538
        expected[name, "per_row"] = (2 * (read + written), 0, 2 * (read + written), moved)
        expected[name, "per_block"] = (2 * touched, 0, 2 * touched, moved)
        expected[name, "direct"] = (2 * touched, 0, 2 * calls, moved)
        expected[name, "gather_pinned"] = (0, 2 * calls, 2 * calls, moved)
    legs = [leg for device in report["devices"] if device["device"] == "ThreadDevice" for leg in device["legs"]]
    found = {
        (leg["step"], leg["scheme"]): (leg["copies"], leg["launches"], leg["waits"], leg["bytes"])
        for leg in legs
        if leg["scheme"] != "flat copy"
    }
    assert found == expected
    for leg in legs:
        parts = leg["submission_milliseconds"] + leg["waiting_milliseconds"]
        assert parts == pytest.approx(leg["staging_milliseconds"]["median"])
        runs = 1 if leg["waits"] > 5 * 2 * TOKENS else 2  # five for each row of a cache, and the smallest chunks by row have eight
        assert (len(leg["rounds"]), len(leg["pairs"])) == (runs, 0 if leg["scheme"] in ("per_row", "flat copy") else 2)
        assert leg["share"]["least"] <= leg["share"]["median"] <= leg["share"]["most"] < 1


@pytest.mark.extended
def test_what_the_steps_are_and_how_their_reads_grow(report: dict[str, Any]) -> None:
    assert [(row["step"], row["forwards"], row["rows_read"], row["rows_written"]) for row in report["steps"]] == [
        (STEPS[0], 1, 0, 256),
        (STEPS[1], 4, 2 * (32 + 64 + 96), 256),
        (STEPS[2], 16, 2 * 8 * 120, 256),
        (STEPS[3], 1, 256, 2),
    ]
    assert [(row["tokens"], row["rows_read"]) for row in report["growth"]] == [
        (8, 0),
        (16, 2 * 8),
        (32, 2 * 8 * 6),
        (64, 2 * 8 * 28),
        (128, 2 * 8 * 120),
    ]
    assert report["verified"]["passes"] == 12
    logits, cached = (1 + 4 + 2 + 16) * 300 * 2, (128 + 130 + 128) * 1538
    assert report["verified"]["bytes"] == 4 * (logits + cached)


def test_the_table_prints_every_number_and_fits_a_wide_terminal(report: dict[str, Any]) -> None:
    text = table(report)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 140
    for part in ("OMP_WAIT_POLICY=told", "hidden 32 (4096)", "latent row 512", "verified first", "EXTRAPOLATION", "2 n * 3 d w"):
        assert part in text
    for device in report["devices"]:
        for leg in device["legs"]:
            words = [leg["scheme"], *(str(leg[name]) for name in ("copies", "launches", "waits")), f"{leg['bytes'] / 1e6:.1f}"]
            assert any(" ".join(line.split()).startswith(" ".join(words)) for line in lines), words
    assert sum(line.startswith("ThreadDevice, ") for line in lines) == 4
    assert len([line for line in lines if line.startswith(("per_row ", "gather_pinned "))]) == 2 * 4 * (len(report["devices"]) + 1)


def test_a_share_that_does_not_fall_is_explained(report: dict[str, Any]) -> None:
    def told(word: str) -> list[str]:
        orders = [{"step": STEPS[0], "schemes": [{"scheme": "per_row", "than_before": "", "band": 0.5}]}]
        orders[0]["schemes"].append({"scheme": "per_block", "than_before": word, "band": 0.25})  # type: ignore[attr-defined]
        changed = report | {"devices": [report["devices"][0] | {"orders": orders}]}
        return [line for line in table(changed).splitlines() if line.startswith(("  prefill in one piece:", "      why:"))]

    assert told("quicker") == ["  prefill in one piece: per_row (50 %) > per_block (25 %)"]
    for word, sign in (("alike", "~"), ("slower", "<")):
        order, why = told(word)
        assert order == f"  prefill in one piece: per_row (50 %) {sign} per_block (25 %)"
        assert "per_row submits 256 in" in why
        assert "per_block submits 8 in" in why


def test_the_small_model_has_the_layers_and_rows_of_the_real_one() -> None:
    assert (REAL.layers, REAL.dsa_layers, REAL.linear_layers, REAL.row_caches) == (45, 11, 34, 22)
    assert (SMALL.layers, SMALL.dsa_layers, SMALL.row_caches, SMALL.index_topk) == (45, 11, 22, 2048)
    assert 8192 * REAL.token_bytes == 138_592_256


def test_the_command_writes_what_it_prints(
    report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "measure_step", lambda *arguments: asked.append(arguments) or report)
    file, plot = tmp_path / "step.json", tmp_path / "step.svg"
    assert step.main(["--quick", "--json", str(file), "--plot", str(plot)]) == 0
    assert asked[0][:2] == (SMALL, 2048)
    assert json.loads(file.read_text()) == json.loads(json.dumps(report))
    assert plot.read_text().startswith("<svg")
    assert capsys.readouterr().out == table(report) + "\n"
    assert step.main([]) == 0
    assert asked[1][:2] == (SMALL, 8192)


@pytest.mark.parametrize("error", [DifferentError("cache 3 differs"), WrongReplayError("cache 3 differs")])
def test_wrong_bytes_end_it_and_nothing_is_told(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(module, "measure_step", fails)
    file = tmp_path / "step.json"
    assert step.main(["--json", str(file)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "python -m bench step: cache 3 differs\n")
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "/nowhere/x.json"], "--json /nowhere/x.json: no file can be written there"),
        (["--plot", "/"], "--plot /: no file can be written there"),
        (["--tokens", "5"], "unrecognized arguments: --tokens 5"),
    ],
)
def test_a_usage_error_is_named_before_any_work(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        step.main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_without_transformers_the_message_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SystemExit) as stop:
        step.main([])
    assert stop.value.code == 2
    assert "pip install 'kvstage[transformers]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "given", "said"),
    [
        ("", None, "OMP_WAIT_POLICY=passive passive"),
        ("", "active", "OMP_WAIT_POLICY=active active"),
        ("import torch; ", None, "OMP_WAIT_POLICY=not set None"),
    ],
)
def test_threads_wait_passively_only_where_it_is_not_too_late_to_ask(before: str, given: str | None, said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"OMP_WAIT_POLICY": given} if given else {})
    program = f"{before}import os; from bench.step import wait_policy; print(wait_policy(), os.environ.get('OMP_WAIT_POLICY'))"
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, said)
