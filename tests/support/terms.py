"""The value of a z3 term where every symbol is given, worked out in Python: products by a symbol are true products."""

from collections.abc import Iterator, Mapping
from typing import Any

import z3

from kvstage_model.symbolic.world import World


def value(world: World, term: Any, given: Mapping[str, int]) -> Any:
    """An int or a bool. `times!n`, `div!n` and `mod!n` are the true ones by the n-th divisor of the world."""
    if z3.is_int_value(term):
        return term.as_long()
    kind, name = term.decl().kind(), term.decl().name()
    if kind == z3.Z3_OP_ITE:
        condition, yes, no = term.children()
        return value(world, yes if value(world, condition, given) else no, given)
    parts = [value(world, part, given) for part in term.children()]
    if kind == z3.Z3_OP_UNINTERPRETED:
        return _applied(world, name, parts, given) if parts else given[name]
    return _OPERATIONS[kind](*parts)


def equal(world: World, values: Mapping[str, int], *calls: str) -> Iterator[Any]:
    """That the symbols have these values; a `parameter x`, which a call may have of its own, in each of the calls."""
    integer = z3.IntSort(world.context)
    for name, number in values.items():
        if name.startswith("parameter "):
            of = z3.Function(name, integer, integer)
            yield from (of(z3.Int(call, world.context)) == number for call in calls)
        else:
            yield z3.Int(name, world.context) == number


def _applied(world: World, name: str, parts: list[int], given: Mapping[str, int]) -> int:
    if name in given:
        return given[name]  # a number that a call may have of its own, given for all of them
    function, number = name.split("!")
    divisor = value(world, world._divisors[int(number)].d, given)
    (k,) = parts
    return {"times": lambda: k * divisor, "div": lambda: k // divisor, "mod": lambda: k % divisor}[function]()


def _product(*parts: int) -> int:
    result = 1
    for part in parts:
        result *= part
    return result


def _floor_division(a: int, b: int) -> int:
    assert b > 0, "a negative divisor is refused before it becomes a term"
    return a // b


_OPERATIONS: dict[int, Any] = {
    z3.Z3_OP_TRUE: lambda: True,
    z3.Z3_OP_FALSE: lambda: False,
    z3.Z3_OP_ADD: lambda *parts: sum(parts),
    z3.Z3_OP_SUB: lambda a, *rest: a - sum(rest),
    z3.Z3_OP_UMINUS: lambda a: -a,
    z3.Z3_OP_MUL: _product,
    z3.Z3_OP_IDIV: _floor_division,
    z3.Z3_OP_MOD: lambda a, b: a - b * _floor_division(a, b),
    z3.Z3_OP_LE: lambda a, b: a <= b,
    z3.Z3_OP_LT: lambda a, b: a < b,
    z3.Z3_OP_GE: lambda a, b: a >= b,
    z3.Z3_OP_GT: lambda a, b: a > b,
    z3.Z3_OP_EQ: lambda a, b: a == b,
    z3.Z3_OP_DISTINCT: lambda a, b: a != b,
    z3.Z3_OP_XOR: lambda a, b: a != b,
    z3.Z3_OP_AND: lambda *parts: all(parts),
    z3.Z3_OP_OR: lambda *parts: any(parts),
    z3.Z3_OP_NOT: lambda a: not a,
    z3.Z3_OP_IMPLIES: lambda a, b: not a or b,
}
