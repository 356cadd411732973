"""Worlds: facts, and the paths of a run over symbolic numbers."""

from itertools import product
from typing import Any

import pytest
import z3

from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.paths import IMPURE, MOST_BRANCHES, MOST_PATHS, Path
from kvstage_model.symbolic.world import World
from tests.support.terms import value


def decisions(paths: list[Path]) -> list[tuple[bool, ...]]:
    return [path.decisions for path in paths]


def test_a_condition_forks_and_what_facts_rule_out_is_pruned() -> None:
    world = World()
    i: Any = world.integer("i")
    world.assume(i >= 0)

    def run() -> str:
        if i < 0:
            return "never"
        return "first" if i == 0 else "later"

    paths = world.paths(run)
    assert decisions(paths) == [(False, True), (False, False)]
    assert [world.follow(path, run)[1] for path in paths] == ["first", "later"]


def test_the_conditions_of_the_paths_split_every_case() -> None:
    world = World()
    i: Any = world.integer("i")
    n: Any = world.integer("n")

    def run() -> int:
        if i == 0 or (i < n and n % 2 == 1):
            return 1
        return 2 if not i > n else 3

    followed = [world.follow(path, run) for path in world.paths(run)]
    assert len(followed) > 3
    for a, b in product(range(-3, 4), repeat=2):
        taken = [result for condition, result in followed if value(world, condition, {"i": a, "n": b})]
        assert taken == [1 if a == 0 or (a < b and b % 2 == 1) else 2 if not a > b else 3]


def test_a_path_is_followed_for_other_indices() -> None:
    world = World()
    i: Any = world.integer("i")
    j: Any = world.integer("j")
    first, second = world.paths(lambda: bool(i == 0))
    condition, taken = world.follow(first, lambda: bool(j == 0))
    assert taken
    assert world.impossible(condition, world.term(j) != 0)
    condition, taken = world.follow(second, lambda: bool(j == 0))
    assert not taken
    assert world.impossible(condition, world.term(j) == 0)


def test_a_loop_over_a_symbolic_number_of_turns_is_refused_with_the_limit() -> None:
    world = World()
    n: Any = world.integer("n")

    def run() -> None:
        k = 0
        while k < n:
            k += 1

    with pytest.raises(UnsupportedError, match=f"more than {MOST_BRANCHES} decisions"):
        world.paths(run)


def test_a_refusal_is_remembered_where_the_run_catches_it() -> None:
    world = World()
    n: Any = world.integer("n")

    def run() -> int:
        try:
            return int(n)
        except UnsupportedError:
            return 0

    for asked in (lambda: world.paths(run), lambda: world.paths(lambda: bool(n > 0)), lambda: world.follow(Path(()), run)):
        with pytest.raises(UnsupportedError, match=r"int\(\): leave it an index"):
            asked()


def test_too_many_paths_are_refused_with_the_limit() -> None:
    world = World()
    flags = [world.integer(f"flag {k}") for k in range(9)]
    assert 2 ** len(flags) > MOST_PATHS
    with pytest.raises(UnsupportedError, match=f"more than {MOST_PATHS} paths"):
        world.paths(lambda: [flag > 0 and None for flag in flags])


def test_a_run_that_decides_otherwise_when_followed_is_impure() -> None:
    world = World()
    i: Any = world.integer("i")
    (first, _) = world.paths(lambda: bool(i == 0))
    with pytest.raises(UnsupportedError, match=IMPURE):
        world.follow(first, lambda: bool(i == 0) and bool(i < 5))
    with pytest.raises(UnsupportedError, match=IMPURE):
        world.follow(first, lambda: None)


def test_a_truth_asked_outside_a_run_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        bool(World().integer("i") > 0)


def test_products_and_quotients_need_a_factor_or_divisor_that_is_at_least_1() -> None:
    world = World()
    a: Any = world.integer("a")
    d: Any = world.integer("d")
    for use in (lambda: a * d, lambda: a // d, lambda: a % d):
        with pytest.raises(UnsupportedError, match="declare its range"):
            use()
    world.assume(d >= 1)
    given = {"a": -5, "d": 3}
    assert [value(world, world.term(term), given) for term in (a * d, d * a, a // d, a % d)] == [-15, -15, -2, 1]


def test_a_divisor_that_one_path_alone_shows_positive_is_refused_on_the_other_one() -> None:
    world = World()
    a: Any = world.integer("a")
    d: Any = world.integer("d")
    seen = []

    def run() -> None:
        seen.append("positive" if d >= 1 else "not")
        _ = a // d

    with pytest.raises(UnsupportedError, match="divisor d"):
        world.paths(run)
    assert seen == ["positive", "not"]
    solver = z3.Solver(ctx=world.context)
    solver.add(*world.facts, world.term(d) == -3, world.term(a) == 7)
    assert solver.check() == z3.sat, "what was found on the path where d is positive must not bind the others"


def test_an_unknown_function_gives_equal_results_for_equal_arguments_alone() -> None:
    world = World()
    f = world.function("f", 2)
    i, j = world.integer("i"), world.integer("j")
    i_, j_ = world.term(i), world.term(j)
    same = world.term(f(i, 1)) == world.term(f(j, 1))
    assert world.impossible(i_ == j_, z3.Not(same))
    assert not world.impossible(z3.Not(same))
    assert world.term(f(i + 0, 2 - 1)).eq(world.term(f(i, 1)))


def test_unknown_is_never_taken_for_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    i: Any = world.integer("i")
    monkeypatch.setattr(world._solver, "check", lambda: z3.unknown)
    assert not world.impossible(z3.BoolVal(False, world.context))
    assert decisions(world.paths(lambda: bool(i < i))) == [(True,), (False,)], "both ways stay open"


def test_an_implied_fact_binds_only_where_its_premise_holds() -> None:
    world = World()
    i: Any = world.integer("i")
    world.assume_implied(i > 0, i > 5)
    assert world.impossible(world.term(i) == 3)
    assert not world.impossible(world.term(i) == 0)
