"""The check of a device: what it says of tests and of bytes. Its legs run here on worker threads."""

import json
from typing import Any

import pytest
import torch

from bench import device_check, device_legs, schemes
from bench.__main__ import main
from bench.device_check import outcomes, table
from bench.device_legs import BY_TORCH, CACHES, FLAT, WrongBytesError, measure
from kvstage import HostDevice, Stats, ThreadDevice
from kvstage.costs import HOST
from kvstage_model.schemes.registry import LIBRARY

XML = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure message="x"/></testcase>
<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase><testcase name="e"/>
</testsuite></testsuites>"""
ALL_WELL = '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>'
ALL_SKIPPED = '<testsuites><testsuite><testcase name="a"><skipped/></testcase></testsuite></testsuites>'


def test_tests_count_by_what_became_of_them() -> None:
    found = outcomes(XML, "said")
    assert (found["ok"], found["passed"], found["failed"], found["skipped"]) == (False, 2, ["b", "d"], 1)
    assert found["says"] == "said"
    assert outcomes(ALL_WELL, "") == {"ok": True, "passed": 1, "failed": [], "skipped": 0}
    assert not outcomes(ALL_SKIPPED, "")["ok"], "nothing passed"


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator here")
def test_without_an_accelerator_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device_check"]) == 2
    assert "torch finds no accelerator" in capsys.readouterr().err


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    with ThreadDevice() as device:
        return measure(device, 40, rounds=1)


def test_every_scheme_is_verified_and_timed_in_both_directions(report: dict[str, Any]) -> None:
    legs = {leg["leg"]: leg for leg in report["legs"]}
    names = [*LIBRARY, "auto"]
    assert legs.keys() == {FLAT, BY_TORCH, *(f"{name} {direction}" for name in names for direction in ("read", "write"))}
    assert report["bytes"] == 11 * 40 * (1024 + 514)
    assert legs["per_block read"]["copies"] == legs["per_block read"]["waits"] == 2 * CACHES
    assert (legs["gather_pinned write"]["launches"], legs["gather_pinned write"]["waits"]) == (CACHES, 1)
    assert all(leg["milliseconds"] > 0 and leg["expected_milliseconds"] > 0 for leg in legs.values())
    assert report["picked"].split(":")[0] in LIBRARY


def test_the_table_shows_it_all_and_the_json_holds_it(report: dict[str, Any]) -> None:
    made = {"name": "card", "accelerator": "cuda", "torch": "2", "cpus": 4, "architecture": "x"}
    whole = report | {"machine": made, "tests": outcomes(XML, "the last words")}
    shown = table(whole)
    for words in ("card, torch 2", "2 passed, 2 failed, 1 skipped", "FAILED b", "the last words", "ring write", "auto picked"):
        assert words in shown
    assert json.loads(json.dumps(whole)) == whole
    assert "WRONG BYTES: cache 3" in table({"machine": made, "tests": outcomes(ALL_WELL, ""), "wrong_bytes": "cache 3"})


@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_leg_that_moves_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    real, calls = getattr(device_legs, f"_{direction}"), []

    def lazy(stager: Any, caches: Any) -> Stats:
        calls.append(len(caches))
        return real(stager, caches[:-1] if len(caches) > 1 else caches)  # the last one is forgotten

    monkeypatch.setattr(device_legs, f"_{direction}", lazy)
    with pytest.raises(WrongBytesError, match=rf"per_row {direction}: \d+ of \d+ bytes of cache {CACHES - 1} are wrong"):
        measure(HostDevice(), 40)
    assert CACHES in calls


def test_tests_that_never_end_are_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(device_check, "PATIENCE", 0.01)
    assert device_check.run_tests(tmp_path)["says"] == "not done after 0.01 seconds"


def test_the_host_is_measured_in_the_same_way(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemes, "ROUNDS", 3)
    assert main(["schemes", "HostDevice", "--rows", "40", "--json", str(tmp_path / "host.json")]) == 0
    shown, found = capsys.readouterr().out, json.loads((tmp_path / "host.json").read_text(encoding="utf-8"))
    legs = {leg["leg"]: leg for leg in found["legs"]}
    assert legs.keys() >= {FLAT, "gather_host read", "gather_host write", "auto read"}
    assert (legs["gather_host read"]["launches"], legs["gather_host read"]["waits"]) == (CACHES, 1)
    assert all(len(leg["rounds"]) == 3 for leg in legs.values())
    assert "gather_host write" in shown
    assert (found["benchmark"], found["rows"]) == ("schemes", 40)
    assert found["costs"]["source"] == "measured on HostDevice", "what each leg is expected to take"
    assert found["picked"].endswith(f"(costs {HOST.source})"), "auto picks by what the device states of itself, as for a user"


def test_rows_are_counted_from_one() -> None:
    for name in (["schemes", "HostDevice"], ["device_check"]):
        with pytest.raises(SystemExit, match="2"):
            main([*name, "--rows", "0"])
