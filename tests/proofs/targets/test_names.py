"""From names and files to obligations."""

import sys
from pathlib import Path

import pytest

from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Statement, Verdict
from kvstage_proofs.targets.guard import SchemeFileError
from kvstage_proofs.targets.names import TargetError, names_it, obligations
from kvstage_proofs.targets.user_file import is_file, load
from tests.support.claims import FIRST, HEAD, user_file, with_scheme

VARIANT = Statement("per_row without its wait", "read", "T1", "It is so.", Verdict.REFUTED)


def names(*targets: str) -> list[str]:
    return [obligation.statement.name for obligation in obligations(targets)]


def test_without_targets_it_is_the_whole_catalogue_in_its_order() -> None:
    assert names() == [obligation.statement.name for obligation in catalogue()]
    assert len(names()) == len(set(names())) > 20


@pytest.mark.parametrize("direction", ["", ".read", ".read:T1"])
def test_a_variant_has_three_names_and_that_of_its_family(direction: str) -> None:
    assert names_it(f"per_row without its wait{direction}", VARIANT)
    assert names_it("per_row", VARIANT)


@pytest.mark.parametrize("name", ["per", "per_row.read", "per_row.read:T1", "without its wait", "read", "T1", ""])
def test_other_names_are_not_its_own(name: str) -> None:
    assert not names_it(name, VARIANT)


def test_names_select_in_the_catalogues_order_and_once() -> None:
    assert names("per_row.read:T7") == ["per_row.read:T7"]
    assert names("per_row.write") == [f"per_row.write:{theorem}" for theorem in ("T1", "T3", "T6", "T7", "T2")]
    assert names("per_row.read:T7", "per_row.read:T1", "per_row.read:T7") == ["per_row.read:T1", "per_row.read:T7"]


def test_a_scheme_comes_with_its_broken_variants_and_without_others() -> None:
    found = names("per_row")
    assert {"per_row.read:T1", "per_row.write:T3", "per_row without SyncStream on stream copy.read:T1"} <= set(found)
    assert all(name.startswith(("per_row.", "per_row ")) for name in found)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("per_blok", "no scheme or obligation 'per_blok'; near it are: per_block"),
        ("per_row.read:T77", "near it are: per_row.read:T7"),
        ("??", "there are .*per_row, per_block.*, or file.py:scheme"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        obligations((name,))


def test_what_is_a_file() -> None:
    assert [is_file(target) for target in ("a.py:read", "folder/a.py:read", "a.py", "per_row.read:T1", "per_row")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_a_files_scheme_has_the_result_theorem_only_where_it_states_one(tmp_path: Path) -> None:
    file = user_file(tmp_path, HEAD)
    assert names(f"{file}:read") == [f"{file}:read:{theorem}" for theorem in ("T1", "T3", "T6", "T7")]
    bare = user_file(tmp_path, HEAD.replace(", result=result)", ")"), "bare.py")
    assert names(f"{bare}:read") == [f"{bare}:read:{theorem}" for theorem in ("T1", "T6", "T7")]


def test_a_session_with_a_phase_called_caller_is_refused(tmp_path: Path) -> None:
    """T7 was PROVED of it: the caller of a scheme may touch the device's memory, for he may be a kernel."""
    lines = """
def session(runs: Runs) -> Scheme:
    rows = Buffer("rows", Memory.DEVICE, 1, 1)
    return Session.of("session", (rows,), Phase("caller", runs.number, lambda i: [HostWrite(rows.at(0, 0, 1))]))
"""
    imports = "from kvstage_model.language.operations import HostWrite\nfrom kvstage_model.language.scheme import Phase, Session\n"
    file = user_file(tmp_path, imports + with_scheme(lines))
    with pytest.raises(SchemeFileError, match=r"session raises PhaseNameError: a phase of session 'session' is called 'caller'"):
        obligations((f"{file}:session",))
    other = user_file(tmp_path, imports + with_scheme(lines.replace('"caller"', '"use"')), "other.py")
    found = {each.statement.theorem: judge(each) for each in obligations((f"{other}:session",))}
    assert {name: judgement.verdict for name, judgement in found.items()} == {
        "T1": Verdict.PROVED, "T6": Verdict.PROVED, "T7": Verdict.REFUTED,
    }  # fmt: skip


def test_files_follow_the_catalogue_and_are_expected_to_be_proved(tmp_path: Path) -> None:
    file = user_file(tmp_path, HEAD)
    found = obligations((f"{file}:read", "per_row.read:T7", f"{file}:read"))
    assert [each.statement.theorem for each in found] == ["T7", "T1", "T3", "T6", "T7"]
    assert {each.statement.expected for each in found} == {Verdict.PROVED}


def test_a_file_finds_its_neighbours_and_leaves_no_path_behind(tmp_path: Path) -> None:
    user_file(tmp_path, HEAD, "neighbour_of_mine.py")
    file = user_file(tmp_path, "from neighbour_of_mine import read\n")
    before = list(sys.path)
    assert load(f"{file}:read").parameters[0].name == "runs"
    assert sys.path == before


def test_a_file_that_fails_leaves_no_module_behind(tmp_path: Path) -> None:
    file = user_file(tmp_path, "1 // 0\n")
    for _ in range(2):
        with pytest.raises(SchemeFileError, match=r"mine.py:1: importing it raises ZeroDivisionError: integer"):
            load(f"{file}:read")


def test_a_file_may_hold_dataclasses_and_annotations_as_text(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Mine:\n    a: int\n"
    file = user_file(tmp_path, text + HEAD)
    assert load(f"{file}:read").parameters[0].name == "runs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:", "mine.py:1: importing it raises SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(0)", "mine.py:2: importing it raises SystemExit: 0"),
        ("def reed(): ...", "mine.py has no 'read'; its functions are: reed"),
        ("", "mine.py has no 'read'; its functions are: none"),
        ("read = 'text'", "mine.py: read is no function but str 'text'"),
        ("def read(n: int): ...", r"mine.py:1: parameter 'n' of 'read' is declared as <class 'int'>: declare Runs"),
        ("def read(n): ...", r"mine.py:1: parameter 'n' of 'read' is declared as None: declare Runs"),
        ("def read(n: 'Gone'): ...", "mine.py: reading the parameters of read raises NameError: name 'Gone' is not defined"),
    ],
)
def test_files_that_cant_be_loaded(tmp_path: Path, text: str, message: str) -> None:
    file = user_file(tmp_path, text + "\n")
    with pytest.raises(SchemeFileError, match=message):
        load(f"{file}:read")


def test_a_missing_file_and_a_missing_scheme(tmp_path: Path) -> None:
    with pytest.raises(SchemeFileError, match=r"there is no file '.*gone.py'"):
        load(f"{tmp_path}/gone.py:read")
    file = user_file(tmp_path, HEAD)
    for target in (f"{file}", f"{file}:"):
        with pytest.raises(SchemeFileError, match=r"mine.py is a file: say which of its schemes; its functions are: read"):
            load(target)


@pytest.mark.parametrize("step", ["lambda i: ()", "lambda i: []"])
def test_a_scheme_without_operations_is_no_success(tmp_path: Path, step: str) -> None:
    file = user_file(tmp_path, with_scheme(f"def idle(runs: Runs):\n    return Scheme('idle', (), runs.number, {step})"))
    with pytest.raises(SchemeFileError, match=r"mine.py:idle yields no operation at all"):
        obligations((f"{file}:idle",))


def test_a_step_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    lines = "def bad(runs: Runs):\n    def step(i):\n        yield SyncStream('copy')\n        yield {}[3]\n"
    file = user_file(tmp_path, with_scheme(f"{lines}    return Scheme('bad', (), runs.number, step)"))
    with pytest.raises(SchemeFileError, match=rf"mine.py:{FIRST + 3}: a step of bad raises KeyError: 3"):
        obligations((f"{file}:bad",))
