"""Symbolic indices mean what Python's ints mean, and refuse everything else by name."""

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.symbolic import index
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.index import Condition, Index
from kvstage_model.symbolic.world import World
from tests.support.terms import value

Tree = Any
"""A number, a name, or an operation with its operands."""
NAMES = ("a", "b", "d")
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "divmod": lambda a, b: sum(divmod(a, b)),
    "min": min,
    "max": max,
    "<": lambda a, b: a if a < b else b + 1,
    "<=": lambda a, b: 1 if a <= b else 0,
    "==": lambda a, b: b if a == b else a - 1,
    "!=": lambda a, b: 1 if a != b and b else 0,
    ">": lambda a, b: 2 if a > b or a == -b else 3,
    ">=": lambda a, b: a if not a >= b else b,
    "flags": lambda a, b: 1 if (a < b) == (b < 3) else 2 if (a > 0) != (b > 0) else 3,
}


def evaluate(tree: Tree, names: dict[str, Any]) -> Any:
    """What the tree means in Python, on ints or on indices."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return names[tree]
    kind, *parts = tree
    operands = [evaluate(part, names) for part in parts]
    if kind in ("abs", "neg"):
        return abs(*operands) if kind == "abs" else -operands[0]
    return BINARY[kind](*operands)


def trees(divisors: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    leaves = st.one_of(st.integers(-6, 6), st.sampled_from(NAMES))

    def grow(smaller: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        by = st.tuples(st.sampled_from(("//", "%", "divmod", "*")), smaller, divisors)
        both = st.tuples(st.sampled_from(sorted(set(BINARY) - {"//", "%", "divmod", "*"})), smaller, smaller)
        return st.one_of(by, by, both, st.tuples(st.sampled_from(("abs", "neg")), smaller))

    return st.recursive(leaves, grow, max_leaves=5)


def symbolic_world() -> tuple[World, dict[str, Any]]:
    world = World()
    names = {name: world.integer(name) for name in NAMES}
    world.assume(names["d"] >= 1)
    return world, names


def along_every_path(tree: Tree) -> tuple[World, list[tuple[Any, Any]]]:
    world, names = symbolic_world()

    def run() -> Any:
        return world.term(evaluate(tree, names))

    return world, [world.follow(path, run) for path in world.paths(run)]


def values() -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({"a": st.integers(-7, 7), "b": st.integers(-7, 7), "d": st.integers(1, 5)})


def test_trees_have_pythons_value_on_the_one_path_that_python_takes_and_every_fact_is_true() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(trees(st.sampled_from(("d", "d", "d", 1, 3))), st.lists(values(), min_size=4, max_size=4))
    def agree(tree: Tree, cases: list[dict[str, int]]) -> None:
        world, paths = along_every_path(tree)
        seen["forks"] += len(paths) > 1
        seen["divides by a symbol"] += bool(world._divisors)
        for case in cases:
            taken = [term for condition, term in paths if value(world, condition, case)]
            assert [value(world, term, case) for term in taken] == [evaluate(tree, case)]
            assert all(value(world, fact, case) for fact in world.facts), "a fact is false of true products"
            seen["negative"] += evaluate(tree, case) < 0

    agree()
    assert seen["forks"] > 20
    assert seen["divides by a symbol"] > 20
    assert seen["negative"] > 50


def test_the_solver_is_forced_to_pythons_value_where_divisors_are_numbers() -> None:
    compared = 0

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(trees(st.integers(1, 5)), values())
    def forced(tree: Tree, case: dict[str, int]) -> None:
        nonlocal compared
        world, paths = along_every_path(tree)
        solver = z3.Solver(ctx=world.context)
        solver.add(*world.facts, *(z3.Int(name, world.context) == number for name, number in case.items()))
        for condition, term in paths:
            solver.push()
            solver.add(condition)
            compared += solver.check() == z3.sat
            solver.add(term != evaluate(tree, case))
            assert solver.check() == z3.unsat
            solver.pop()

    forced()
    assert compared >= 60


@pytest.mark.parametrize("divisor", [1, 2, 5])
@pytest.mark.parametrize("a", [-7, -5, -1, 0, 1, 6])
def test_floors_of_negative_numbers_by_a_symbolic_divisor(a: int, divisor: int) -> None:
    world, names = symbolic_world()
    quotient, remainder = divmod(names["a"], names["d"])
    solver = z3.Solver(ctx=world.context)
    solver.add(*world.facts)
    case = {"a": a, "d": divisor}
    assert (value(world, quotient.term, case), value(world, remainder.term, case)) == divmod(a, divisor)  # type: ignore[attr-defined]
    solver.add(z3.Int("a", world.context) == a, z3.Int("d", world.context) == divisor)
    solver.add(quotient.term == a // divisor, remainder.term == a % divisor)  # type: ignore[attr-defined]
    solver.add(world._divisors[0].times(quotient.term)[0] == a // divisor * divisor)  # type: ignore[attr-defined]
    assert solver.check() == z3.sat


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "float": (float, "float()"),
    "complex": (complex, "float()"),
    "int": (int, "int()"),
    "range": (range, "concrete number"),
    "list index": (lambda i: [1, 2][i], "concrete number"),
    "slice": (lambda i: [1, 2][:i], "concrete number"),
    "chr": (chr, "concrete number"),
    "dict key": (lambda i: {i: 1}, "key of a dict"),
    "set": (lambda i: {i}, "key of a dict"),
    "in a set": (lambda i: i in {1, 2}, "key of a dict"),
    "f-string": (lambda i: f"{i}", "text"),
    "f-string with a format": (lambda i: f"{i:d}", "text"),
    "str": (str, "text"),
    "repr": (repr, "text"),
    "%s": (lambda i: "%s" % i, "text"),  # noqa: UP031 the operator is what is refused
    "/": (lambda i: i / 2, "/"),
    "/ from the right": (lambda i: 2 / i, "/"),
    "**": (lambda i: i**2, "**"),
    "pow": (lambda i: pow(2, i), "**"),
    "<<": (lambda i: 1 << i, "<<"),
    ">>": (lambda i: i >> 1, ">>"),
    "&": (lambda i: i & 1, "bit operations"),
    "|": (lambda i: 1 | i, "bit operations"),
    "^": (lambda i: i ^ 1, "bit operations"),
    "~": (lambda i: ~i, "bit operations"),
    "round": (round, "rounding"),
    "len": (len, "container"),
    "iteration": (list, "container"),
    "call": (lambda i: i(), "container"),
    "getattr": (lambda i: i.bit_length(), "bit_length"),
    "None": (lambda i: i == None, "None"),  # noqa: E711 the comparison is what is refused
    "str compared": (lambda i: i != "1", "'1'"),
    "float compared": (lambda i: i < 1.5, "1.5"),
    "bool compared": (lambda i: i == True, "True"),  # noqa: E712
    "bool added": (lambda i: i + True, "True"),
    "condition added": (lambda i: i + (i > 0), "truth of a comparison"),
    "raw term compared": (lambda i: i == z3.Int("raw", i.term.ctx), "raw solver term"),
    "raw term added": (lambda i: i + z3.Int("raw", i.term.ctx), "raw solver term"),
    "list repeated": (lambda i: [0] * i, "[0]"),
    "truth as text": (lambda i: f"{i > 0}", "text"),
    "truth as an index": (lambda i: ["odd", "even"][i % 2 == 0], "number"),
    "truth as a number": (lambda i: 1 + (i > 0), "arithmetic"),
    "truths summed": (lambda i: sum([i > 0, i > 1]), "arithmetic"),
    "truth as a key": (lambda i: {i > 0: 1}, "key"),
    "truth compared with a number": (lambda i: (i > 0) == 1, "1 (int)"),
    "truth compared with None": (lambda i: (i > 0) != None, "None"),  # noqa: E711
    "truth and a raw term": (lambda i: (i > 0) & (z3.Int("raw", i.term.ctx) > 0), "raw solver term"),
    "divisor zero": (lambda i: i // 0, "divisor 0"),
    "divisor negative": (lambda i: i % -2, "divisor -2"),
    "divisor unknown": (lambda i: 7 // i, "declare its range"),
    "product of unknowns": (lambda i: i * i, "declare its range"),
}


@pytest.mark.parametrize(("use", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_what_has_no_exact_meaning_is_refused_by_name(use: Callable[[Any], object], named: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        use(World().integer("i"))
    assert named in str(refusal.value)


def test_the_int_methods_that_an_index_lacks_are_refused_and_none_slips_through_to_object() -> None:
    index: Any = World().integer("i")
    harmless = {"__class__", "__doc__", "__init__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__dir__"}
    harmless |= {"__init_subclass__", "__subclasshook__", "__reduce__", "__reduce_ex__", "__getstate__", "__sizeof__"}
    inherited = [name for name in dir(int) if getattr(Index, name, None) is getattr(object, name, ...) and name not in harmless]
    assert inherited == []
    with pytest.raises(UnsupportedError, match="numerator"):
        _ = index.numerator


def test_a_truth_compared_with_a_truth_compares_their_values() -> None:
    """By identity, which is the default, the comparison would be False without a word, and a wait behind it would vanish."""
    world = World()
    i: Any = world.integer("i")
    even = i % 2 == 0
    assert world.impossible(world.formula((even == True) != even))  # noqa: E712
    assert world.impossible(world.formula((even != (i % 2 == 1)) != True))  # noqa: E712
    assert not world.impossible(world.formula(even == (i > 3)))


def test_without_its_own_equality_a_truth_is_silently_unequal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Condition, "__eq__", object.__eq__)
    i: Any = World().integer("i")
    assert ((i > 0) == (i > 0)) is False


def test_a_raw_term_is_silently_false_where_an_index_asks() -> None:
    raw = z3.Int("i")
    assert not bool(raw == 0)
    world = World()
    i = world.integer("i")
    assert [path.decisions for path in world.paths(lambda: bool(i == 0))] == [(True,), (False,)]


def test_terms_and_formulas_take_indices_ints_conditions_and_bools_alone() -> None:
    world = World()
    assert index.term_of(world, 3).as_long() == 3
    assert z3.is_true(index.formula(world, True))
    for refused in (True, 1.0, None, "i", z3.Int("raw", world.context)):
        with pytest.raises(UnsupportedError, match="meets"):
            index.term_of(world, refused)
    for refused in (1, None, "i", world.integer("i"), z3.Bool("raw", world.context)):
        with pytest.raises(UnsupportedError, match="meets"):
            index.formula(world, refused)
