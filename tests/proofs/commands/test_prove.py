"""`kvstage prove` from outside: exit codes, users' files, and what is printed."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvstage_proofs.commands.main import main
from kvstage_proofs.commands.outcomes import exit_code
from kvstage_proofs.obligation import Theorem, Verdict
from tests.support.claims import (
    HEAD,
    PROVED,
    REFUTED,
    UNKNOWN,
    UNSUPPORTED,
    VACUOUS,
    WAIT,
    claim,
    judgement,
    user_file,
)

Captured = pytest.CaptureFixture[str]
SetCatalogue = Callable[..., None]


# -- exit codes


@pytest.mark.parametrize("expected", Verdict)
@pytest.mark.parametrize("verdict", Verdict)
def test_only_the_expected_verdict_is_no_error(verdict: Verdict, expected: Verdict) -> None:
    wanted = 0 if verdict == expected else 3 if verdict == UNKNOWN else 1
    assert exit_code([judgement(verdict, expected)]) == wanted
    assert exit_code([judgement(PROVED), judgement(verdict, expected), judgement(REFUTED, REFUTED)]) == wanted


def test_a_wrong_verdict_outweighs_an_unknown_one_and_nothing_judged_is_no_success() -> None:
    assert exit_code([judgement(UNKNOWN), judgement(REFUTED)]) == 1
    assert exit_code([judgement(VACUOUS), judgement(UNKNOWN)]) == 1
    assert exit_code([]) == 2


@pytest.mark.parametrize(
    ("verdict", "expected", "code"),
    [
        (PROVED, PROVED, 0),
        (REFUTED, REFUTED, 0),
        (PROVED, REFUTED, 1),
        (REFUTED, PROVED, 1),
        (VACUOUS, PROVED, 1),
        (UNSUPPORTED, PROVED, 1),
        (UNKNOWN, PROVED, 3),
        (UNKNOWN, REFUTED, 3),
    ],
)
def test_the_verdict_that_was_found_decides_the_exit_code(
    catalogue_of: SetCatalogue, capsys: Captured, verdict: Verdict, expected: Verdict, code: int
) -> None:
    catalogue_of(claim(PROVED), claim(verdict, expected))
    assert main(["prove"]) == code
    line = [line for line in capsys.readouterr().out.splitlines() if ":T0" in line][1]
    assert line.startswith(verdict.value)
    assert ("<- expected" in line) == (code != 0)


def test_a_wrong_expectation_in_the_real_catalogue_turns_it_red(catalogue_of: SetCatalogue, capsys: Captured) -> None:
    from kvstage_model.schemes.registry import LIBRARY
    from kvstage_proofs.theorems.t7_bounds import T7

    catalogue_of(T7.of(LIBRARY["per_row"].read, "per_row", "read"))
    assert main(["prove"]) == 0
    catalogue_of(T7.of(LIBRARY["per_row"].read, "per_row", "read", REFUTED))
    assert main(["prove"]) == 1
    assert "<- expected REFUTED" in capsys.readouterr().out


def test_an_empty_catalogue_is_no_success(catalogue_of: SetCatalogue, capsys: Captured) -> None:
    catalogue_of()
    assert main(["prove"]) == 2
    assert capsys.readouterr().err == "kvstage: there is no obligation to judge\n"


def test_an_error_of_ours_is_no_verdict(catalogue_of: SetCatalogue, capsys: Captured) -> None:
    broken = Theorem[int]("T0", "broken", "It is so.", lambda number: iter([1 // number]), lambda _: None)
    catalogue_of(claim(REFUTED), broken.of(0, "divides by nothing"))
    assert main(["prove"]) == 2
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert err.endswith("kvstage: internal error\n")


@pytest.mark.parametrize("arguments", [[], ["prov"], ["prove", "--fast"], ["prove", "--json"], ["explain"], ["explain", "a", "b"]])
def test_bad_usage(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: kvstage" in capsys.readouterr().err


def test_an_unknown_name_is_bad_usage_and_near_names_are_offered(capsys: Captured) -> None:
    assert main(["prove", "per_row.read:T7", "per_blok"]) == 2
    captured = capsys.readouterr()
    assert "no scheme or obligation 'per_blok'; near it are: per_block" in captured.err
    assert captured.out == ""


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`kvstage` as a process of its own."""
    command = [sys.executable, "-m", "kvstage_proofs", *arguments]
    return subprocess.run(command, cwd=folder, env=_environment(environment), capture_output=True, text=True, check=False)


def _environment(more: dict[str, str]) -> dict[str, str]:
    roots = os.pathsep.join(path for path in sys.path if Path(path).is_dir())
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    return {**kept, "PYTHONPATH": roots, "TERM": "xterm", **more}


def test_the_process_ends_with_the_exit_code(tmp_path: Path) -> None:
    user_file(tmp_path, HEAD.replace(WAIT, ""))
    assert run("prove", "per_row.read:T7", folder=tmp_path).returncode == 0
    assert run("prove", "mine.py:read", folder=tmp_path).returncode == 1
    assert run("prove", "mine.py:gone", folder=tmp_path).returncode == 2


# -- a user's own scheme


def test_a_right_scheme_of_a_user_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    user_file(tmp_path, HEAD)
    monkeypatch.chdir(tmp_path)
    assert main(["prove", "mine.py:read"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert {f"mine.py:read:{name}" for name in ("T1", "T3", "T7")} <= {line.split()[1] for line in lines}
    assert {line.split()[0] for line in lines} == {"PROVED"}
    assert last.startswith(f"{len(lines)} obligations: {len(lines)} PROVED as expected; ")


def test_a_lost_wait_is_refuted_and_both_accesses_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert WAIT in HEAD
    user_file(tmp_path, HEAD.replace(WAIT, ""))
    monkeypatch.chdir(tmp_path)
    assert main(["prove", "mine.py:read"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("REFUTED  ")
    assert lines[0].endswith("in 1 step  <- expected PROVED")
    assert lines[1] == "    instance: runs = runs pool[0].rows[0:1], 1 call"
    marked = [line.split("step 0: ")[1].removesuffix("  <--").rstrip() for line in lines[2:6] if line.endswith("  <--")]
    copy, taken = "Copy pool[0].rows[0:1] -> stage[0].rows[0:1] on stream copy", "HostCopy stage[0].rows[0:1] -> out[0].rows[0:1]"
    assert marked == [copy, taken, copy, taken]  # both begin before the first one ends
    assert lines[6].startswith("    wrong: ")


def test_rows_outside_a_buffer_refute_the_result_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    outside = HEAD.replace(WAIT, "").replace("stage.at(0, 0, run.count))\n", "stage.at(0, 1, run.count))\n")
    assert outside != HEAD.replace(WAIT, "")
    user_file(tmp_path, outside)
    monkeypatch.chdir(tmp_path)
    assert main(["prove", "mine.py:read"]) == 1
    out = capsys.readouterr().out
    found = {line.split()[1][-2:]: line.split()[0] for line in out.splitlines() if "  mine.py:read:T" in line}
    assert (found["T3"], found["T7"]) == ("REFUTED", "REFUTED")
    assert out.count("not so: the rows of stage lie inside its slot") == 2


def test_an_index_used_as_a_number_is_unsupported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    user_file(
        tmp_path,
        "from kvstage_model.language.partitions import Runs\n\ndef loop(runs: Runs):\n    return list(range(runs.number))\n",
    )
    monkeypatch.chdir(tmp_path)
    assert main(["prove", "mine.py:loop"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("UNSUPPORTED  mine.py:loop:T1")
    assert lines[1].startswith("    mine.py:4: a symbolic index is used as a concrete number")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def other(): ...", "mine.py has no 'read'; its functions are: other"),
        ("read = 3", "mine.py: read is no function but int 3"),
        ("import nothing_there", "mine.py:1: importing it raises ModuleNotFoundError: No module named 'nothing_there'"),
        ("def read(): return 3", "mine.py: read returns 3, not a Scheme"),
    ],
)
def test_a_file_that_cant_be_judged_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, text: str, message: str
) -> None:
    user_file(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    assert main(["prove", "mine.py:read"]) == 2
    assert capsys.readouterr() == ("", f"kvstage: {message}\n")


# -- what is printed


def test_schedules_are_shown_where_they_are_news(catalogue_of: SetCatalogue, capsys: Captured) -> None:
    catalogue_of(claim(REFUTED, REFUTED))
    for arguments, shown in (["prove"], False), (["prove", "-v"], True), (["prove", "gets REFUTED:T0"], True):
        assert main(arguments) == 0
        assert ("    wrong: it is not so" in capsys.readouterr().out.splitlines()) == shown
    catalogue_of(claim(REFUTED))
    assert main(["prove"]) == 1
    assert "    wrong: it is not so" in capsys.readouterr().out.splitlines()


def on_terminal(*arguments: str, folder: Path, **environment: str) -> str:
    """What `kvstage` writes to a terminal, stdout and stderr together."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "kvstage_proofs", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=_environment(environment), stdin=its, stdout=its, stderr=its)
    os.close(its)
    read = bytearray()
    try:
        while some := os.read(ours, 4096):
            read += some
    except OSError:  # how Linux says that nobody has the terminal open any more
        pass
    os.close(ours)
    assert process.wait() == 0
    return read.decode()


def test_colours_and_progress_are_for_terminals(tmp_path: Path) -> None:
    coloured = on_terminal("prove", "per_row.read:T7", folder=tmp_path)
    assert "\x1b[32mPROVED" in coloured
    assert "\r1/1 ...\r\x1b[K" in coloured
    plain = on_terminal("prove", "per_row.read:T7", folder=tmp_path, NO_COLOR="1")
    assert "\nPROVED" in plain.replace("\x1b[K", "\n")
    assert "\x1b[32m" not in plain
    piped = run("prove", "per_row.read:T7", folder=tmp_path)
    assert (piped.stdout.startswith("PROVED"), "\x1b" in piped.stdout, piped.stderr) == (True, False, "")


def test_the_prover_never_imports_torch(tmp_path: Path) -> None:
    script = (
        "import sys, kvstage_proofs.commands.main\n"
        "assert 'torch' not in sys.modules\n"
        "assert kvstage_proofs.commands.main.main(['prove', 'per_row.read:T7']) == 0\n"
        "print('torch' in sys.modules, 'z3' in sys.modules)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=_environment({}), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False True"
