"""The rules about products, quotients and remainders, against true arithmetic."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest
import z3

from kvstage_model.symbolic import division as divisors
from kvstage_model.symbolic.division import Divisor, euclid, remainder_two, times_one, times_two
from kvstage_model.symbolic.world import World
from tests.support.terms import value

SMALL = range(-6, 7)
DIVISORS = range(1, 5)
Rule = Callable[..., Iterable[Any]]


def one(rule: Rule, d: int, k: int) -> Iterable[Any]:
    return rule(z3.IntVal(d), z3.IntVal(k), z3.IntVal(k * d))


def two(rule: Rule, d: int, a: int, b: int) -> Iterable[Any]:
    return rule(*map(z3.IntVal, (d, a, a * d, b, b * d)))


def division(rule: Rule, d: int, k: int) -> Iterable[Any]:
    return rule(*map(z3.IntVal, (d, k, k // d, k // d * d, k % d)))


def remainders(rule: Rule, d: int, a: int, b: int) -> Iterable[Any]:
    return rule(*map(z3.IntVal, (d, a, a % d, b, b % d)))


def false_instances(rule: Rule, fill: Callable[..., Iterable[Any]], numbers: int) -> Iterator[tuple[int, ...]]:
    """The numbers for which the rule says something false; every instance is looked at."""
    looked = 0
    for d, *ks in product(DIVISORS, *[SMALL] * numbers):
        for formula in fill(rule, d, *ks):
            looked += 1
            if not z3.is_true(z3.simplify(formula)):
                yield d, *ks
    assert looked >= len(DIVISORS) * len(SMALL)


RULES = {"times_one": (times_one, one, 1), "times_two": (times_two, two, 2), "euclid": (euclid, division, 1)}
RULES["remainder_two"] = (remainder_two, remainders, 2)


@pytest.mark.parametrize(("rule", "fill", "numbers"), RULES.values(), ids=RULES.keys())
def test_every_instance_of_a_rule_is_true_of_small_numbers(rule: Rule, fill: Callable[..., Iterable[Any]], numbers: int) -> None:
    assert list(false_instances(rule, fill, numbers)) == []


WRONG: dict[str, tuple[Rule, Callable[..., Iterable[Any]], int]] = {
    "a product of 1 is more than d": (lambda d, k, kd: [z3.Implies(k >= 1, kd > d)], one, 1),
    "a gap of more than d": (lambda d, a, ad, b, bd: [z3.Implies(a < b, ad + d < bd)], two, 2),
    "remainders up to d": (lambda d, k, q, qd, r: [z3.And(r >= 1, r <= d, k == qd + r)], division, 1),
    "truncation instead of floor": (lambda d, k, q, qd, r: [z3.Implies(k < 0, z3.And(r <= 0, k == qd + r))], division, 1),
    "equal remainders more than d apart": (lambda d, a, ar, b, br: [z3.Implies(z3.And(a < b, ar == br), a + d < b)], remainders, 2),
}


@pytest.mark.parametrize(("rule", "fill", "numbers"), WRONG.values(), ids=WRONG.keys())
def test_a_rule_that_says_too_much_has_a_false_instance(rule: Rule, fill: Callable[..., Iterable[Any]], numbers: int) -> None:
    assert list(false_instances(rule, fill, numbers))


@pytest.mark.parametrize("number", range(4))
def test_the_lemmas_are_valid_and_those_about_products_need_a_positive_divisor(number: int) -> None:
    context = z3.Context()
    name, lemma = list(divisors.lemmas(context))[number]
    solver = z3.Solver(ctx=context)
    solver.add(z3.Not(lemma))
    assert solver.check() == z3.unsat, name
    if name.startswith(("a product", "the gap")):
        _, conclusion = lemma.children()
        without = z3.Solver(ctx=context)
        without.add(z3.Not(conclusion))
        assert without.check() == z3.sat, f"{name}: its premise is no use"


def test_the_lemmas_state_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that no lemma states would be assumed without a proof: each rule, made false, makes some lemma invalid."""
    for rule in ("times_one", "times_two", "remainder_two"):
        with monkeypatch.context() as patched:
            stated = getattr(divisors, rule)

            def wrong(*terms: Any, stated: Rule = stated) -> Iterator[Any]:
                yield from [z3.BoolVal(False, terms[0].ctx) for _ in stated(*terms)]

            patched.setattr(divisors, rule, wrong)
            context = z3.Context()
            answers = []
            for _, lemma in divisors.lemmas(context):
                solver = z3.Solver(ctx=context)
                solver.add(z3.Not(lemma))
                answers.append(solver.check())
            assert z3.sat in answers, rule


@pytest.mark.extended
def test_all_facts_of_a_sequence_of_products_and_divisions_are_true() -> None:
    world = World()
    names = ("a", "b", "c", "d")
    a, b, c, d = (world.integer(name) for name in names)
    world.assume(d >= 1)
    used = (a * d, (a + 1) * d, b // d, b % d, (b + d) % d, (c * d + a) // d, c * d % d, (a // d) * d)
    assert len(used) == 8
    looked = 0
    for numbers in product((-3, 0, 4), (-2, 5), (-1, 4), (1, 3)):
        given = dict(zip(names, numbers, strict=True))
        for fact in world.facts:
            assert value(world, fact, given), (fact, given)
            looked += 1
    assert looked > 1000


def test_the_facts_of_two_divisions_separate_slots_of_a_ring() -> None:
    """`a % d == b % d` with `a < b` means `b >= a + d`: what a ring of d slots stands on."""
    world = World()
    a, b, d = (world.integer(name) for name in "abd")
    world.assume(d >= 1, a < b, b < a + d)
    same = world.term(a % d) == world.term(b % d)
    assert world.impossible(same)


def test_without_the_gap_lemma_the_slots_are_not_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in ("times_two", "remainder_two"):
        monkeypatch.setattr(divisors, rule, lambda *terms: iter(()))
    world = World()
    a, b, d = (world.integer(name) for name in "abd")
    world.assume(d >= 1, a < b, b < a + d)
    assert not world.impossible(world.term(a % d) == world.term(b % d))


def test_facts_are_given_once_and_guarded() -> None:
    context = z3.Context()
    d, k = z3.Ints("d k", context)
    divisor = Divisor(0, d)
    product_term, facts = divisor.times(k)
    assert facts
    assert divisor.times(k) == (product_term, [])
    assert all(fact.children()[0].eq(d >= 1) for fact in facts)
    solver = z3.Solver(ctx=context)
    solver.add(*facts, d == -2, k == 1, product_term == -2)
    assert solver.check() == z3.sat, "a fact binds a product by a number below 1"
