"""Mutants of the schemes' text: without any one operation that a scheme yields, one of its theorems falls."""

import ast
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kvstage_model.language.operations import RecordEvent, SyncEvent, SyncStream, WaitEvent
from kvstage_model.schemes import direct, gather, pool_copy, ring, staged
from kvstage_model.schemes.registry import ENTRIES
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t3_result
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.solver import claimed
from tests.support.texts import run_text

ORDERINGS = tuple(kind.__name__ for kind in (SyncStream, SyncEvent, WaitEvent, RecordEvent))
"""What is there for the order alone: without one of them, it is T1 that falls."""


def yields(tree: ast.Module) -> list[tuple[str, ast.Expr]]:
    """Each statement that yields an operation, with the function around it."""
    return [
        (function.name, statement)
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)
    ]


@dataclass(frozen=True)
class Mutant:
    """A module of schemes without one of its statements that yield, `taken_out`, of `function`."""

    module: types.ModuleType
    number: int
    function: str
    taken_out: str

    def __str__(self) -> str:
        return f"{self.function}: {self.taken_out}"

    @property
    def orders(self) -> bool:
        """Whether a wait or a record is gone."""
        return self.taken_out.removeprefix("(yield ").startswith(ORDERINGS)

    @property
    def heavy(self) -> bool:
        """Whether its proofs take seconds."""
        return self.function in ("gather_read", "gather_write")

    def schemes(self) -> list[str]:
        """The scheme functions whose loop the function has: itself, or those that share it."""
        functions = [f for f in ast.parse(inspect.getsource(self.module)).body if isinstance(f, ast.FunctionDef)]
        calls = [f.name for f in functions if any(isinstance(n, ast.Name) and n.id == self.function for n in ast.walk(f))]
        return calls if self.function.startswith("_") else [self.function]

    def built(self) -> types.ModuleType:
        """The module, made anew without the statement."""
        tree, nothing = ast.parse(inspect.getsource(self.module)), ast.parse("yield from ()")
        _, removed = yields(tree)[self.number]
        for parent in ast.walk(tree):
            for field in ("body", "orelse"):
                statements = getattr(parent, field, None)
                if isinstance(statements, list) and removed in statements:
                    statements[statements.index(removed)] = ast.copy_location(nothing.body[0], removed)
        module = types.ModuleType(f"{self.module.__name__}_mutant")
        module.__package__ = self.module.__package__
        run_text(ast.unparse(tree), f"<mutant {self.number} of {self.module.__name__}>", module.__dict__)
        return module


def mutants(module: types.ModuleType) -> Iterator[Mutant]:
    """One for each statement of a module that yields an operation."""
    for number, (function, statement) in enumerate(yields(ast.parse(inspect.getsource(module)))):
        yield Mutant(module, number, function, ast.unparse(statement.value))


MODULES = (staged, direct, ring, gather, pool_copy)
MUTANTS = tuple(mutant for module in MODULES for mutant in mutants(module))
LIGHT, HEAVY = ([mutant for mutant in MUTANTS if mutant.heavy is heavy] for heavy in (False, True))


@pytest.mark.parametrize("module", MODULES)
def test_every_yield_of_the_text_is_taken_out(module: types.ModuleType) -> None:
    taken_out = [mutant for mutant in MUTANTS if mutant.module is module]
    assert len(taken_out) == inspect.getsource(module).count("    yield ") > 1
    judged = {loop.scheme.__name__ for entry in ENTRIES for loop in (entry.loops.read, entry.loops.write)}
    assert {scheme for mutant in taken_out for scheme in mutant.schemes()} <= judged


def test_waits_and_records_of_all_kinds_are_among_them() -> None:
    gone = [mutant.taken_out for mutant in MUTANTS if mutant.orders]
    assert all(any(f"yield {kind}(" in text for text in gone) for kind in ORDERINGS)
    assert len(MUTANTS) - len(gone) > 10


def falls(mutant: Mutant) -> None:
    """A theorem of the scheme falls: T1 where a wait or a record is gone, and then an instance refutes it."""
    module = mutant.built()
    assert mutant.schemes()
    for function in (getattr(module, scheme) for scheme in mutant.schemes()):
        theorems = (T1,) if mutant.orders else (T1, t3_result.T3, T7)
        assert any(claimed(theorem.queries(function)) is not Verdict.PROVED for theorem in theorems)
        if mutant.orders:
            assert judge(T1.of(function, "mutant", expected=Verdict.REFUTED)).ok


@pytest.mark.parametrize("mutant", LIGHT, ids=str)
def test_without_any_operation_of_a_scheme_a_theorem_falls(mutant: Mutant) -> None:
    falls(mutant)


@pytest.mark.extended
@pytest.mark.parametrize("mutant", HEAVY, ids=str)
def test_without_any_operation_of_a_gather_a_theorem_falls(mutant: Mutant) -> None:
    falls(mutant)


@pytest.mark.parametrize("function", [staged.staged_read, ring.ring_write])
def test_with_all_of_its_operations_none_falls(function: object) -> None:
    """The twin: what falls, falls for what is gone."""
    for theorem in (T1, t3_result.T3, T7):
        assert claimed(theorem.queries(function)) is Verdict.PROVED  # type: ignore[arg-type]
