"""Schemes of a user's own as C++: what each kind of operation and statement becomes, and what is refused, by its line."""

import subprocess
from pathlib import Path

import pytest

from kvstage_emit.reading.refusal import EmitError
from kvstage_emit.writing.header import of_function
from kvstage_proofs.commands.main import main
from kvstage_proofs.targets.user_file import plain
from tests.support.emitted import HEADERS, compiled

HERE = Path(__file__).parent
SCHEMES = ("polled", "fresh", "backwards", "kernels", "ring_session", "batch_session")
GOLDEN = HERE / "golden"


def text(file: Path, name: str) -> str:
    """The functions of a header, without its top."""
    draft = of_function(plain(f"{file}:{name}"), f"{file}:{name}")
    return "\n".join(function.text for function in draft.functions)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_header_is_the_golden_one(name: str) -> None:
    golden = (GOLDEN / f"{name}.hpp").read_text(encoding="utf-8")
    assert text(HERE / "user_schemes.py", name) in golden


def test_the_command_writes_it_with_its_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    assert main(["emit", "user_schemes.py:polled", "--lang", "cpp", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "polled.hpp").read_text(encoding="utf-8") == (GOLDEN / "polled.hpp").read_text(encoding="utf-8")
    assert "//   PROVED   user_schemes.py:polled:T1  no hazard\n" in (tmp_path / "polled.hpp").read_text(encoding="utf-8")


def test_they_run_right_under_schedules(tmp_path: Path) -> None:
    for file in (*HEADERS.glob("*.hpp"), *GOLDEN.glob("*.hpp")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    program = compiled(tmp_path, source=HERE / "run_user_schemes.cpp", headers=tmp_path)
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert run.stdout == "0 wrong of 4840\n"


def test_division_is_cpps_only_if_no_operand_can_be_negative() -> None:
    assert "floor_mod(0 - i, 3)" in text(HERE / "user_schemes.py", "backwards")
    assert "i % 2" in text(HERE / "user_schemes.py", "polled")


STEP = """\
from collections.abc import Iterator
from typing import Annotated

from kvstage_model import AtLeast, Buffer, Copy, Event, Flags, Memory, Operation, Scheme, SyncEvent, SyncStream


def scheme(turns: Annotated[int, AtLeast(0)], free: Flags) -> Scheme:
    a, b = Buffer("a", Memory.PINNED, 1, 1), Buffer("b", Memory.DEVICE, turns, 1)
    seen: list[int] = []

    def step(i: int) -> Iterator[Operation]:
        {line}
        yield Copy("s", a.at(0, 0, 1), b.at(i, 0, 1))
        yield SyncStream("s")

    return Scheme("scheme", (a, b), turns, step)
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("while i: pass", "there is no C++ for 'while i:'"),
        ("x = i ** 2", "there is no C++ for 'i ** 2'"),
        ("seen.append(i)", "'append' changes a container in a step"),
        ("x = f'{i}'", "a number of the scheme is used as text"),
        ("x = {i: 1}", "is the key of a dict"),
        ("x = a if i == 0 else b", "chooses between what is no number"),
        ("yield SyncEvent(Event('e', 2 * i + 1))", "how many events 'e' has is not plain"),
        ("if free(i): yield SyncStream('s')", "a flag decides before its query has answered"),
        ("for k in range(3): break", "a loop with break"),
        ("for k in range(3): pass\n        x = k", "'k' is read after its loop"),
        ("x = (i < 2) == 1", "a condition is compared with what is none"),
        ("import os", "there is no C++ for 'import os'"),
        ("unknown()", "the name 'unknown' stands for nothing here"),
    ],
)
def test_what_has_no_cpp_is_refused_by_its_line(line: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "scheme.py"
    file.write_text(STEP.replace("{line}", line), encoding="utf-8")
    with pytest.raises(EmitError) as refused:
        text(file, "scheme")
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{file}:12: ")


def test_conditions_are_compared_as_conditions(tmp_path: Path) -> None:
    file = tmp_path / "scheme.py"
    line = "if (i < 2) == (turns < 3): yield SyncStream('s')"
    file.write_text(STEP.replace("{line}", line), encoding="utf-8")
    assert "if ((i < 2) == (turns < 3)) {" in text(file, "scheme")


def test_a_word_of_cpp_is_no_name(tmp_path: Path) -> None:
    file = tmp_path / "scheme.py"
    file.write_text(STEP.replace("{line}", "pass").replace("turns", "new"), encoding="utf-8")
    with pytest.raises(EmitError, match="'new' is a word of C\\+\\+"):
        text(file, "scheme")


def test_without_such_a_line_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "scheme.py"
    file.write_text(STEP.replace("{line}", "pass"), encoding="utf-8")
    assert "backend.copy(s_stream, a.at(0, 0, 1), b.at(i, 0, 1));" in text(file, "scheme")


HOISTED = (
    STEP.replace("{line}", "yield HostWrite(a.at(0, 0, 1))")
    .replace("import AtLeast", "import HostWrite, AtLeast")
    .replace(", free: Flags", "")
    .replace('        yield SyncStream("s")\n', "")
)


def test_what_is_not_proved_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "hoisted.py", tmp_path / "out"
    file.write_text(HOISTED, encoding="utf-8")
    assert main(["emit", f"{file}:scheme", "-o", str(out)]) == 1
    assert f"{file}:scheme:T1 is REFUTED, not PROVED: nothing is written." in capsys.readouterr().out
    assert not out.exists()


def test_an_unknown_scheme_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", "per_blok", "-o", str(tmp_path / "out")]) == 2
    assert "there is no scheme 'per_blok' to emit; there are staged, per_row" in capsys.readouterr().err
