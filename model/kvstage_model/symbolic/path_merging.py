"""Merging of paths: one list of operations for all paths of a step, each with the condition under which it happens.

Operations of different paths become one if they agree in everything but their numbers; those become `If` terms.
Unmerged, the number of pairs to judge grows with the square of the number of paths.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import z3

from ..language.operations import Operation
from .index import Index
from .world import World
from .z3_terms import Term

T = TypeVar("T")


def shape(value: object) -> object:
    """What two values must have in common to be merged: everything but their numbers."""
    if isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool)):
        return "number"
    if isinstance(value, tuple) or is_dataclass(value):
        return (type(value), *map(shape, _parts(value)))
    return value


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else tuple(getattr(value, field.name) for field in fields(value))


def identical(world: World, value: object, other: object) -> bool:
    """Whether two values are the same, numbers and all, without asking anything of the solver."""
    if shape(value) == "number" and shape(other) == "number":
        return bool(world.term(value).eq(world.term(other)))
    if type(value) is type(other) and (isinstance(value, tuple) or is_dataclass(value)):
        mine, others = _parts(value), _parts(other)
        return len(mine) == len(others) and all(identical(world, a, b) for a, b in zip(mine, others, strict=True))
    return shape(value) == shape(other)


def merge(world: World, condition: Term, value: T, other: T) -> T:
    """`value` if the condition holds, else `other`. Both have one shape."""
    return cast(T, _merge(world, condition, value, other))


def _merge(world: World, condition: Term, value: Any, other: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_merge(world, condition, a, b) for a, b in zip(value, other, strict=True))
    if is_dataclass(value):
        make: Any = type(value)
        return make(*(_merge(world, condition, a, b) for a, b in zip(_parts(value), _parts(other), strict=True)))
    if shape(value) != "number":
        return value
    a, b = world.term(value), world.term(other)
    return value if a.eq(b) else world.index(z3.If(condition, a, b))


def merge_paths(world: World, paths: Sequence[tuple[Term, Sequence[Operation]]]) -> list[tuple[Term, Operation]]:
    """One list of operations for all paths, that keeps the order of each; the longest path comes first.

    The paths must be all the feasible ones: what happens on each of them happens always.
    """
    longest_first = sorted(paths, key=lambda path: -len(path[1]))
    merged: list[tuple[list[Term], Operation]] = []
    for path, operations in longest_first:
        at = 0
        for operation in operations:
            while at < len(merged) and shape(merged[at][1]) != shape(operation):
                at += 1
            if at == len(merged):
                merged.append(([path], operation))
            else:
                conditions, known = merged[at]
                merged[at] = ([*conditions, path], merge(world, path, operation, known))
            at += 1
    always = z3.BoolVal(True, world.context)
    return [(always if len(conditions) == len(paths) else z3.Or(conditions), operation) for conditions, operation in merged]
