"""`kvstage traces` and `kvstage check` from outside: files, verdicts and exit codes."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.traces.json_reader import read_file
from kvstage_proofs.commands.main import main
from kvstage_proofs.commands.trace_files import subjects, traces
from tests.support.tiers import often

Captured = pytest.CaptureFixture[str]
FORMATS = {"json": "{", "chrome": "{", "svg": "<svg ", "text": "  host"}

LOOP = """
from collections.abc import Iterator

from kvstage_model import Buffer, Copy, HostCopy, Memory, Operation, PagedRows, Scheme, SyncStream


def one(rows: PagedRows) -> Scheme:
    pool = Buffer("pool", Memory.DEVICE, rows.num_blocks, rows.block_size)
    stage, out = Buffer("stage", Memory.PINNED, 1, 1), Buffer("out", Memory.PAGEABLE, 1, rows.stop - rows.start)

    def step(i: int) -> Iterator[Operation]:
        yield Copy("s", pool.at(*rows.address(i), 1), stage.at(0, 0, 1))
        yield SyncStream("s")
        yield HostCopy(stage.at(0, 0, 1), out.at(0, i, 1))

    return Scheme("one", (pool, stage, out), rows.stop - rows.start, step)
"""


def folders(path: Path) -> dict[str, int]:
    return {folder.name: len(list(folder.iterdir())) for folder in sorted(path.iterdir())}


@pytest.fixture
def per_row(tmp_path: Path, capsys: Captured) -> Path:
    assert main(["traces", "per_row", "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.count("schedules in") == 8
    return tmp_path / "out"


def test_a_name_stands_for_its_scheme_and_its_variants_and_only_those_that_race_show_a_race(per_row: Path) -> None:
    found = folders(per_row)
    assert found["per_row.read"] == found["per_row.write"] == 8
    assert len(found) == 8
    for name in found:
        assert (per_row / name / "race.json").exists() == ("-w" in name), name


@pytest.mark.extended
def test_what_is_written_checks_against_its_own_scheme_and_no_other(per_row: Path, capsys: Captured) -> None:
    checked = 0
    for file in sorted(per_row.glob("*.read/*.json")):
        own = file.parent.name == "per_row.read"
        if not own and file.name not in ("race.json", "issue-order.json"):
            continue
        assert main(["check", str(file), "--scheme", "per_row.read"]) == (0 if own else 1)
        out = capsys.readouterr().out
        assert (f"{file}: a run of per_row.read" in out) == own
        assert ("nothing orders the end of" in out) == (not own)
        checked += 1
    assert checked == 8 + 3 * 2
    capsys.readouterr()


def test_a_broken_variant_is_its_own_scheme_but_races(per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row-without-SyncStream-on-stream-copy.read" / "race.json"
    assert main(["check", str(file), "--scheme", "per_row without SyncStream on stream copy.read"]) == 1
    out = capsys.readouterr().out
    assert "comes where" not in out
    assert "touch a common row and may overlap" in out
    assert "# both of the race run" in out


@pytest.mark.parametrize("form", FORMATS)
def test_formats(form: str, tmp_path: Path) -> None:
    assert main(["traces", "direct.read", "-o", str(tmp_path), "--format", form]) == 0
    files = list((tmp_path / "direct.read").iterdir())
    assert len(files) >= 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.startswith(FORMATS[form])
        if form in ("json", "chrome"):
            json.loads(text)
    if form == "json":
        assert all(read_file(file).arguments for file in files)


def test_several_formats_at_once(tmp_path: Path) -> None:
    assert main(["traces", "gather_pinned.read", "-o", str(tmp_path), "--format", "svg", "--format", "json"]) == 0
    suffixes = [file.suffix for file in (tmp_path / "gather_pinned.read").iterdir()]
    assert suffixes.count(".svg") == suffixes.count(".json") == len(suffixes) / 2 > 0


def test_a_scheme_of_a_users_own(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["traces", "loop.py:one", "-o", "out"]) == 0
    assert set(folders(tmp_path / "out")) == {"loop.py-one", "loop.py-one-without-SyncStream-on-stream-s"}
    assert main(["check", "out/loop.py-one/issue-order.json", "--scheme", "loop.py:one"]) == 0
    assert main(["check", "out/loop.py-one-without-SyncStream-on-stream-s/race.json", "--scheme", "loop.py:one"]) == 1
    assert "the SyncStream is missing" in capsys.readouterr().out


@pytest.mark.parametrize("kept", [1, 3, 29])
def test_a_trace_that_is_cut_says_how_much_of_it_is_there(kept: int, per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row.read" / "issue-order.json"
    value: Any = json.loads(file.read_text(encoding="utf-8"))
    assert len(value["events"]) == 2 * len(value["program"]) == 30
    value["events"] = value["events"][:kept]
    file.write_text(json.dumps(value), encoding="utf-8")
    assert main(["check", str(file), "--scheme", "per_row.read"]) == 0
    said = f"{file}: the beginning of a run of per_row.read: 15 operations in 1 call, {kept} of 30 events, no race\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("change", [{"memory": "pageable"}, {"slots": 99}, {"memory": "pinned", "slots": 99}])
def test_a_buffer_that_is_another_is_told_by_what_differs(change: dict[str, Any], per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row.read" / "issue-order.json"
    value: Any = json.loads(file.read_text(encoding="utf-8"))
    (pool,) = (buffer for buffer in value["buffers"] if buffer["name"] == "pool")
    pool.update(change)
    file.write_text(json.dumps(value), encoding="utf-8")
    assert main(["check", str(file), "--scheme", "per_row.read"]) == 1
    memory, out = change.get("memory"), capsys.readouterr().out
    said = f"pool is {memory} memory, and the scheme's pool is device" if memory else "pool has 99 slots of "
    assert said in out
    assert "the rows are others" not in out


def test_a_trace_of_another_schemes_arguments_is_told_so(per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row.read" / "issue-order.json"
    assert main(["check", str(file), "--scheme", "ring.read"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said == (
        "kvstage: calls[0] has the arguments of another scheme, an object with rows: "
        "this one takes an object with runs and slots or an object with rows and slots"
    )


@pytest.mark.parametrize(
    "command", often([["traces", "per_row", "-o", "out"], ["prove", "copy.read:T1"], ["explain", "copy.read:T1"]], 1)
)
def test_a_reader_that_has_enough_ends_a_command_without_a_word(command: list[str], tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "kvstage_proofs", *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.close()
    assert (run.stderr.read(), run.wait()) == (b"", 128 + signal.SIGPIPE)
    run.stderr.close()


def test_a_run_with_another_table_is_no_run_of_what_was_called(per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row.read" / "issue-order.json"
    value: Any = json.loads(file.read_text(encoding="utf-8"))
    value["calls"][0]["rows"]["table"].reverse()
    file.write_text(json.dumps(value), encoding="utf-8")
    code = main(["check", str(file), "--scheme", "per_row.read"])
    assert (code, "the rows are others" in capsys.readouterr().out) == (1, True)


@pytest.mark.parametrize("name", ["per_row.read", "ring.write", "gather.read", "direct.write"])
def test_a_call_of_the_library_is_checked_by_the_name_of_its_scheme_too(name: str, tmp_path: Path, capsys: Captured) -> None:
    """As it is proved, a scheme takes any runs; as the library calls it, a block table."""
    scheme, direction = name.split(".")
    function = getattr(LIBRARY[scheme], direction)
    written = list(traces(function))
    assert len(written) > 2
    for number, each in enumerate(written[:2]):
        file = tmp_path / f"{number}.json"
        file.write_text(each.text("json"), encoding="utf-8")
        assert "table" in each.arguments[0]["rows"]
        assert main(["check", str(file), "--scheme", name]) == 0
    assert capsys.readouterr().out.count("no race") == 2


@pytest.mark.parametrize(
    ("change", "says"),
    often(
        [
            (lambda value: value.pop("calls"), "the arguments of 0: it must say what each call was given, an object with rows"),
            (lambda value: value["calls"].append({}), "has the arguments of 2"),
            (lambda value: value["calls"][0].pop("rows"), "an object with nothing in it: this one takes an object with rows"),
            (lambda value: value.update(version=7), "version 7"),
            (lambda value: value.update(events=[]), "nothing begins or ends"),
        ],
        4,
    ),
)
def test_a_file_that_is_no_trace_is_told_in_one_line(change: Any, says: str, per_row: Path, capsys: Captured) -> None:
    file = per_row / "per_row.read" / "issue-order.json"
    value = json.loads(file.read_text(encoding="utf-8"))
    change(value)
    file.write_text(json.dumps(value), encoding="utf-8")
    assert main(["check", str(file), "--scheme", "per_row.read"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("kvstage: ")
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_what_can_not_be_read_or_written_or_named_is_bad_usage(tmp_path: Path, capsys: Captured) -> None:
    assert main(["check", str(tmp_path / "none.json"), "--scheme", "per_row.read"]) == 2
    assert "can't read" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "none.json"), "--scheme", "per_row"]) == 2
    assert "stands for 8 schemes: say which, such as 'per_row.read'" in capsys.readouterr().err
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["traces", "per_row.read", "-o", str(tmp_path / "file")]) == 2
    assert "can't write" in capsys.readouterr().err
    assert main(["traces", "per_rwo", "-o", str(tmp_path)]) == 2
    assert "near it are" in capsys.readouterr().err
    assert main(["traces", "lemmas", "-o", str(tmp_path)]) == 2
    assert "names no scheme that has schedules" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["traces", "per_row"])
    assert ended.value.code == 2
    capsys.readouterr()


def test_every_wait_and_record_of_the_ring_that_is_lost_is_shown_as_a_race() -> None:
    found = {name: function for name, function in subjects("ring").items() if name.startswith(("ring.", "ring without "))}
    lost = {name: any(each.race for each in traces(function)) for name, function in found.items() if "drain" not in name}
    assert [name for name, races in lost.items() if not races] == ["ring.read", "ring.write"]
    assert len(lost) >= 7
