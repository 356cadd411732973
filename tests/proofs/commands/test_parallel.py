"""Judging in several processes: the order, and what can go wrong there."""

from pathlib import Path

import pytest

from kvstage_proofs.commands import parallel
from kvstage_proofs.commands.parallel import RunnerError, judge_all, longest_first, processes
from kvstage_proofs.obligation import Statement, Verdict
from kvstage_proofs.targets.guard import SchemeFileError
from kvstage_proofs.targets.names import obligations
from tests.support.claims import HEAD, PROVED, claim, user_file

TARGETS = ("lemmas", "per_row.read", "per_row without SyncStream on stream copy.read")
KNOWN = {
    "lemmas:L1": Verdict.PROVED,
    "per_row.read:T1": Verdict.PROVED,
    "per_row.read:T3": Verdict.PROVED,
    "per_row.read:T7": Verdict.PROVED,
    "per_row without SyncStream on stream copy.read:T1": Verdict.REFUTED,
    "per_row without SyncStream on stream copy.read:T3": Verdict.REFUTED,
}

IN_A_WORKER = "from multiprocessing import parent_process\nif parent_process() is not None:\n    "


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "processes", lambda number: 2)


@pytest.mark.usefixtures("two_workers")
def test_workers_judge_the_same_obligations_and_the_order_is_kept() -> None:
    steps: list[int] = []
    stated = obligations(TARGETS)
    found = list(judge_all(TARGETS, stated, steps.append))
    assert [each.statement.name for each in found] == [each.statement.name for each in stated]
    verdicts = {each.statement.name: each.verdict for each in found}
    assert {name: verdicts[name] for name in KNOWN} == KNOWN
    assert steps == list(range(1, len(stated) + 1))
    broken = next(each.counterexample for each in found if each.verdict is Verdict.REFUTED)
    assert broken is not None
    assert any("HostCopy" in line for line in broken.schedule)  # operations cross between processes


def test_one_process_judges_what_it_is_given() -> None:
    steps: list[int] = []
    stated = [claim(PROVED)]
    assert [each.verdict for each in judge_all((), stated, steps.append)] == [PROVED]
    assert steps == [1]


@pytest.mark.usefixtures("two_workers")
def test_a_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    file = user_file(tmp_path, f"import os\n{IN_A_WORKER}os._exit(0)\n{HEAD}")
    targets = (f"{file}:read",)
    with pytest.raises(RunnerError, match="a process that judges obligations died"):
        list(judge_all(targets, obligations(targets), lambda _: None))


@pytest.mark.usefixtures("two_workers")
def test_an_error_in_a_worker_is_raised_here(tmp_path: Path) -> None:
    file = user_file(tmp_path, f"{IN_A_WORKER}raise OSError('only there')\n{HEAD}")
    targets = (f"{file}:read",)
    with pytest.raises(SchemeFileError, match=r"mine.py:3: importing it raises OSError: only there"):
        list(judge_all(targets, obligations(targets), lambda _: None))


@pytest.mark.usefixtures("two_workers")
def test_a_worker_that_finds_another_obligation_is_not_believed() -> None:
    targets = ("per_row.read:T7", "per_row.write:T7")
    swapped = obligations(targets)[::-1]
    with pytest.raises(RunnerError, match=r"another obligation in place of per_row.write:T7"):
        list(judge_all(targets, swapped, lambda _: None))


def test_the_longest_ones_begin_first() -> None:
    statements = [Statement("loop", "read", theorem, "It is so.") for theorem in ("T1", "T3", "T7", "T1", "T3", "T7")]
    assert longest_first(statements) == [4, 1, 5, 3, 2, 0]


def test_no_more_processes_than_processors_or_obligations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert [processes(number) for number in (1, 3, 4, 63)] == [1, 3, 4, 4]
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert processes(63) == 1
