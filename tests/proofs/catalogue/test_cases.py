"""The cases' obligations: every bug is refuted and every fix proved; the page and the commands say so."""

from pathlib import Path

import pytest

from kvstage_model.cases import CASES
from kvstage_proofs.catalogue.cases import obligations, of_case
from kvstage_proofs.commands.main import main
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Obligation, Verdict
from kvstage_proofs.reports.cases import page
from tests.support.paths import ROOT
from tests.support.tiers import often

ALL = tuple(obligations())


def test_each_case_has_a_bug_that_must_be_refuted_and_a_fix_that_must_be_proved() -> None:
    assert len({each.statement.name for each in ALL}) == len(ALL) > 100
    for case in CASES.values():
        stated = [each.statement for each in of_case(case)]
        assert stated[0].expected is Verdict.REFUTED
        fixed = {each.theorem for each in stated if each.direction == "fix"}
        assert {"T1", "T6", "T7"} <= fixed
        assert case.theorem in fixed


@pytest.mark.parametrize("obligation", often(ALL, 12), ids=lambda each: each.statement.name)
def test_the_verdict_is_the_expected_one(obligation: Obligation) -> None:
    judgement = judge(obligation)
    assert judgement.ok, judgement


def test_the_page_is_made_from_the_cases() -> None:
    assert (ROOT / "docs" / "cases.md").read_text(encoding="utf-8").splitlines() == list(page())


def test_the_command_shows_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "case:H13"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("H13  vllm-project/vllm-ascend#13726  bug T1 REFUTED, fix PROVED")
    assert main(["prove", "case:H99"]) == 2
    assert "case:H9" in capsys.readouterr().err


HOISTED = """
from kvstage_model import Buffer, Copy, HostRead, Memory, Runs, Scheme, SyncStream

def loop(runs: Runs) -> Scheme:
    pool = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size)
    stage = Buffer("stage", Memory.PINNED, 1, runs.longest)

    def step(i: int):
        run = runs.part(i)
        yield Copy("copy", pool.at(run.slot, run.start, run.count), stage.at(0, 0, run.count))
        WAIT
        yield HostRead(stage.at(0, 0, run.count))

    return Scheme("loop", (pool, stage), runs.number, step)
"""


def test_bugs_like_a_scheme_are_named_and_none_is_like_a_right_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, right = tmp_path / "wrong.py", tmp_path / "right.py"
    wrong.write_text(HOISTED.replace("        WAIT\n", ""), encoding="utf-8")
    right.write_text(HOISTED.replace("WAIT", 'yield SyncStream("copy")'), encoding="utf-8")
    assert main(["cases", "--like", f"{wrong}:loop"]) == 0
    shown = capsys.readouterr().out
    assert "a stream writes, and the host reads" in shown
    assert "H31" in shown
    assert "H01" not in shown
    assert main(["cases", "--like", f"{right}:loop"]) == 0
    assert "no race" in capsys.readouterr().out
    assert main(["cases", "--like", "per_block.read"]) == 2
    assert main(["cases"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CASES)
