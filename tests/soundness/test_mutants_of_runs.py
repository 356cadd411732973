"""Mutants of the partitions' text and of the bounds: each is noticed."""

import ast
import inspect
from collections.abc import Callable, Iterator

import pytest

from kvstage_model.language import partitions
from kvstage_model.language.bounds import bounds
from kvstage_model.language.contract import Clause
from kvstage_model.language.operations import Copy, HostCopy, HostRead, HostWrite, Operation
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import p1_partitions, t7_bounds
from kvstage_proofs.theorems.t7_bounds import T7
from tests.support.loops import Place, loop
from tests.support.solver import claimed

PROVED, REFUTED, *_ = Verdict

# -- partitions: every number and operator in their text

SWAPPED: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.FloorDiv: ast.Mod(),
    ast.Mult: ast.Add(),
}


def mutants(function: Callable[..., object]) -> Iterator[tuple[str, ast.Module]]:
    """The text of a function with one operator or number changed, and with min and max exchanged, one after the other."""
    source = inspect.getsource(function)
    for number in range(len(list(ast.walk(ast.parse(source))))):
        tree = ast.parse(source)
        node = list(ast.walk(tree))[number]
        before = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if isinstance(node, ast.BinOp):
            node.op = SWAPPED[type(node.op)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            node.value -= 1
        elif isinstance(node, ast.Name) and node.id in ("min", "max"):
            node.id = "max" if node.id == "min" else "min"
        else:
            continue
        yield f"{before} -> {ast.unparse(node)}", tree


def built(function: Callable[..., object], tree: ast.Module) -> p1_partitions.Cut:
    namespace = dict(vars(partitions))
    exec(compile(tree, "a mutant of a partition", "exec"), namespace)
    return namespace[function.__name__]


BY_ROW, BY_BLOCK, BY_CHUNK = (list(mutants(cut)) for cut in (partitions.by_row, partitions.by_block, partitions.by_chunk))


@pytest.mark.parametrize("tree", [tree for _, tree in BY_ROW], ids=[name for name, _ in BY_ROW])
def test_any_change_of_the_partition_by_row_is_noticed(tree: ast.Module) -> None:
    assert claimed(p1_partitions.queries(built(partitions.by_row, tree))) is not PROVED


@pytest.mark.extended
@pytest.mark.parametrize("tree", [tree for _, tree in BY_BLOCK], ids=[name for name, _ in BY_BLOCK])
def test_any_change_of_the_partition_by_block_is_noticed(tree: ast.Module) -> None:
    assert claimed(p1_partitions.queries(built(partitions.by_block, tree))) is not PROVED


@pytest.mark.parametrize("tree", [tree for _, tree in BY_CHUNK], ids=[name for name, _ in BY_CHUNK])
def test_any_change_of_the_partition_by_chunk_is_noticed(tree: ast.Module) -> None:
    assert claimed(p1_partitions.queries(built(partitions.by_chunk, tree))) is not PROVED


def test_the_texts_have_mutants() -> None:
    assert min(map(len, (BY_ROW, BY_BLOCK, BY_CHUNK))) >= 2
    assert len(BY_CHUNK) >= 8


# -- bounds


BREAKS: dict[str, Callable[[Place, int], list[Operation]]] = {
    "the slot of stage exists": lambda place, i: [place.scribble(i, 1)],
    "the rows of stage lie inside its slot": lambda place, i: [HostWrite(place.stage.at(0, 1, place.runs.part(i).count))],
    "the count of rows of stage is not negative": lambda place, i: [place.scribble(i), HostRead(place.stage.at(0, 0, -1))],
    "source and target have as many rows": lambda place, i: [HostCopy(place.stage.at(0, 0, 1), place.scratched(i))],
    "source and target are disjoint": lambda place, i: [Copy("copy", place.staged(i), place.staged(i))],
}


@pytest.mark.parametrize(("demand", "body"), BREAKS.items(), ids=BREAKS.keys())
def test_without_a_demand_of_t7_what_breaks_it_is_proved(
    demand: str, body: Callable[[Place, int], list[Operation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge(T7.of(loop(body), "right bounds")).verdict is REFUTED

    def fewer(operation: Operation, row: int, other: int) -> Iterator[Clause]:
        return (clause for clause in bounds(operation, row, other) if clause.name != demand)

    monkeypatch.setattr(t7_bounds, "bounds", fewer)
    assert claimed(T7.queries(loop(body))) is PROVED
