"""Queries as SMT-LIB files: any solver reads them, and answers what the file says."""

import re
from pathlib import Path

import pytest
import z3

from kvstage_model.language.partitions import by_row
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.symbolic import division
from kvstage_proofs.commands.main import main
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.judging.smt2_export import Folder, file_name
from kvstage_proofs.obligation import Obligation
from kvstage_proofs.solvers import cvc5_solver
from kvstage_proofs.solvers.query import Answer, Query
from kvstage_proofs.theorems.l1_gap_lemma import L1
from kvstage_proofs.theorems.p1_partitions import P1
from kvstage_proofs.theorems.t1_no_hazard import T1
from tests.support.claims import PROVED, claim

SOME = [L1.of(division.lemmas, "lemmas"), P1.of(by_row, "by_row"), T1.of(LIBRARY["per_row"].write, "per_row", "write")]


@pytest.mark.parametrize("obligation", SOME, ids=lambda obligation: obligation.statement.name)
def test_both_solvers_answer_what_the_files_say(obligation: Obligation, tmp_path: Path) -> None:
    judgement = judge(obligation, Folder(tmp_path))
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2 * len(judgement.asked) > 0
    expected = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        (answer,) = re.findall(r"^; expected: (\w+)", text, re.MULTILINE)
        solver = z3.Solver()
        solver.from_string(text)
        assert str(solver.check()) == answer
        assert cvc5_solver.solve_smtlib(text)[0] is Answer(answer)
        expected.append(answer)
    assert expected.count("unsat") >= len(files) // 2
    assert "sat" in expected


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    judgement = judge(SOME[0], Folder(tmp_path))
    first = sorted(tmp_path.iterdir())[0].read_text(encoding="utf-8").splitlines()
    assert first[0] == "; obligation: lemmas:L1, must be PROVED"
    assert first[1] == f"; claim: {judgement.statement.claim}"
    assert first[2] == f"; query: {judgement.asked[0].name}"
    assert first[5] == "(set-logic QF_NIA)"
    assert "(set-info :status unsat)" in first


def test_cvc5_complains_where_the_status_in_the_file_is_wrong(tmp_path: Path) -> None:
    judge(SOME[0], Folder(tmp_path))
    text = sorted(tmp_path.iterdir())[0].read_text(encoding="utf-8")
    assert cvc5_solver.solve_smtlib(text)[0] is Answer.UNSAT
    with pytest.raises(cvc5_solver.CrosscheckError):
        cvc5_solver.solve_smtlib(text.replace(":status unsat", ":status sat"))


NAMES = ["per_row.read:T1", "../../etc/x.py:read:T1", "a b", "a-b", "a/b", "", ".", "..", "ä" * 300, "b" * 300, "b" * 301, "A B"]


def test_names_of_files_are_safe_and_told_apart() -> None:
    names = [file_name(name) for name in NAMES]
    assert len({name.lower() for name in names}) == len(NAMES)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,120}", name)
        assert not name.startswith(".")


def test_no_name_ends_its_comment(tmp_path: Path) -> None:
    context = z3.Context()
    x, true = z3.Int("x", context), z3.BoolVal(True, context)
    named = Query("two\n(assert false)\rlines", [], true, x > x, true)
    judge(Obligation(claim(PROVED).statement, lambda: iter([named]), lambda _: None), Folder(tmp_path))
    for file in tmp_path.iterdir():
        assert "; query: two (assert false) lines\n" in file.read_text(encoding="utf-8")


def test_a_folder_that_can_not_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["prove", "lemmas", "--smt2", str(tmp_path / "file")]) == 2
    assert "can't write into" in capsys.readouterr().err


def test_the_command_writes_them_from_all_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "lemmas", "by_row", "--smt2", str(tmp_path / "new" / "folder")]) == 0
    written = [file.name for file in (tmp_path / "new" / "folder").iterdir()]
    assert {name.split("-")[0] for name in written} == {"lemmas", "by_row"}
    assert "2 PROVED" in capsys.readouterr().out
