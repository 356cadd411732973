"""Which axioms a proof rests on, against ablation of the axioms themselves; and what habits of drivers would hide."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kvstage_model.language.edits import edited
from kvstage_model.language.operations import Operation
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.ordering.axioms import AXIOMS, Edge, Moment, Own, edges, own
from kvstage_model.schemes.gather import gather_read
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.schemes.ring import ring_read
from kvstage_model.schemes.staged import staged_read, staged_write
from kvstage_model.symbolic import window as window_module
from kvstage_proofs.catalogue.driver_habits import HABITS, blocking, kernel, pageable, unpinned_read, verdicts
from kvstage_proofs.commands.main import main
from kvstage_proofs.judging.judge import judge, verdict_of
from kvstage_proofs.judging.t8_axioms_used import core, holds_without, table, with_axioms
from kvstage_proofs.obligation import Theorem, Verdict
from kvstage_proofs.solvers.query import Answer
from kvstage_proofs.solvers.z3_solver import ask
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.tiers import often

PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED

MEASURED: list[tuple[Theorem[SchemeFunction], SchemeFunction, str]] = [
    (T1, staged_read, "A1 A2 A4"),
    (T3, staged_read, "A1 A2 A4"),
    (T1, staged_write, "A1 A2 A4"),
]
"""What each was seen to need when a prototype took the axioms out of its own code, one by one."""


@pytest.mark.parametrize(("theorem", "function", "needed"), MEASURED, ids=lambda value: getattr(value, "__name__", str(value))[:20])
def test_what_a_proof_needs(theorem: Theorem[SchemeFunction], function: SchemeFunction, needed: str) -> None:
    judgement = judge(theorem.of(function, "scheme"), with_axioms)
    assert " ".join(judgement.needed) == needed
    assert set(judgement.needed) <= set(judgement.used) <= set(AXIOMS)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("function", "needed"), [(LIBRARY["per_block"].read, "A1 A2 A4"), (ring_read, "A1 A2 A3 A5"), (gather_read, "A1 A2 A3 A5 A6")]
)
def test_what_t1_needs_of_larger_schemes(function: SchemeFunction, needed: str) -> None:
    assert " ".join(judge(T1.of(function, "scheme"), with_axioms).needed) == needed


@pytest.mark.parametrize("name", often(["A1", "A2", "A3", "A4"], 1))
def test_without_its_edges_an_axiom_is_missed_just_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sign of an axiom stands for all its edges: the same proofs are lost where the edges are not there at all."""
    by_sign = name in judge(T1.of(staged_read, "scheme"), with_axioms).needed

    def fewer(first: Operation, second: Operation) -> Iterator[Edge]:
        yield from (edge if edge.axiom != name else replace(edge, when=False) for edge in edges(first, second))

    def looser(operation: Operation) -> Iterator[Own]:
        yield from (rule if rule.axiom != name else Own(name, rule.earlier, rule.earlier) for rule in own(operation))

    monkeypatch.setattr(window_module, "edges", fewer)
    monkeypatch.setattr(window_module, "own", looser)
    answers = []
    for query in T1.queries(staged_read):
        asked = ask(query)
        while asked.open and query.strengthened is not None:
            query = query.strengthened()
            asked = ask(query)
        answers.append(asked)
    assert (verdict_of(answers)[0] is not PROVED) == by_sign


def test_the_core_alone_refutes_every_doubt() -> None:
    asked = 0
    for query in T1.queries(staged_read):
        if ask(query).answer is Answer.UNSAT:
            for name in set(AXIOMS) - core(query):
                assert holds_without(query, name)
                asked += 1
    assert asked > len(AXIOMS)


def test_a_doubt_that_stands_has_no_core() -> None:
    query = next(query for query in T1.queries(unpinned_read) if ask(query).open)
    with pytest.raises(RuntimeError, match="is not any more"):
        core(query)


def test_what_speaks_of_no_time_and_what_is_not_proved_rest_on_no_axiom() -> None:
    assert judge(T7.of(staged_read, "scheme"), with_axioms).used == ()
    assert judge(T1.of(unpinned_read, "scheme", expected=REFUTED), with_axioms).used == ()


def test_the_table_shows_theorem_by_axiom() -> None:
    judgement = judge(T1.of(staged_read, "staged", "read"), with_axioms)
    head, line, legend = table([judgement])
    assert head.split() == ["axioms", *AXIOMS]
    assert line.split()[:3] == ["staged.read:T1", "needed", "needed"]
    assert line.split()[5:] == ["-", "-", "-"]
    assert "lost without it" in legend


# -- habits


@pytest.mark.parametrize("theorem", [T1, T3], ids=["T1", "T3"])
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.words[:20])
def test_a_habit_that_is_believed_hides_its_mistake(habit: Any, theorem: Theorem[SchemeFunction]) -> None:
    assert verdicts(habit, theorem) == (REFUTED, PROVED)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.words[:20])
def test_one_habit_does_not_hide_what_the_other_does(habit: Any) -> None:
    (other,) = (each for each in HABITS if each is not habit)
    assert judge(T1.of(edited(habit.mistake, blocking(other.of)), "scheme", expected=REFUTED)).verdict is REFUTED


@pytest.mark.parametrize(("of", "mistake"), [(pageable, HABITS[0].mistake), (kernel, HABITS[1].mistake)], ids=["copy", "kernel"])
def test_as_an_axiom_of_its_own_a_habit_hides_the_same(of: Any, mistake: SchemeFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    """A habit is stated as a wait. Stated as an edge, from the operation's end to the next issue, it comes to the same."""

    def with_habit(first: Operation, second: Operation) -> Iterator[Edge]:
        yield from edges(first, second)
        if of(first):
            yield Edge("A1", Moment.END, Moment.ISSUE)

    assert judge(T1.of(mistake, "scheme", expected=REFUTED)).verdict is REFUTED
    monkeypatch.setattr(window_module, "edges", with_habit)
    monkeypatch.setattr("kvstage_model.ordering.races.edges", with_habit)
    assert judge(T1.of(mistake, "scheme")).verdict is PROVED


def test_the_command_shows_table_and_habits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "staged.read:T1", "--axioms"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown if line.startswith(("axioms ", "staged.read:T1 "))] == ["axioms", "staged.read:T1"]
    habits = [line for line in shown if line.startswith("no axiom: ")]
    assert len(habits) == len(HABITS)
    assert all("T1 REFUTED, T3 REFUTED; were it believed, T1 PROVED, T3 PROVED" in line for line in habits)
