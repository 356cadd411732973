"""Symbolic indices: a scheme's ordinary Python (+ - * // % min max if and or) becomes linear terms and paths.

A scheme is annotated `int` and written like the loop it replaces. While it is proved it gets an `Index` for each
number. A comparison of indices gives a `Condition`; when Python asks for its truth, the run forks (see `World`).
Anything that an index can't do raises `UnsupportedError` by name: it is never silently a number or silently False.
"""

from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias, cast

import z3

from .errors import UnsupportedError
from .z3_terms import Term

INDEXED = "a slot or an event is named by its index, as in Event('filled', i % slots), and needs no list or dict"
"""What to do in place of a list of events or slots."""


class World(Protocol):
    """What an index asks of the world that it lives in."""

    context: z3.Context

    def product(self, a: Term, b: Term) -> Term:
        """`a * b`: one of them a number, or provably at least 1."""

    def quotient(self, a: Term, b: Term) -> Term:
        """`a // b` for b provably at least 1."""

    def remainder(self, a: Term, b: Term) -> Term:
        """`a % b` for b provably at least 1."""

    def decide(self, condition: Term) -> bool:
        """Which way the running path goes at this condition."""

    def refuse(self, reason: str) -> UnsupportedError:
        """The error to raise. It is remembered."""

    def demand_no_refusal(self) -> None:
        """Raises the first refusal again, if there was one."""


class Condition:
    """The truth of a comparison between indices. `&`, `|`, `~`, `==` and `!=` combine conditions without forking."""

    __slots__ = ("term", "world")

    def __init__(self, world: World, term: Term) -> None:
        self.world, self.term = world, term

    def __bool__(self) -> bool:
        return self.world.decide(self.term)

    def _with(self, combine: Callable[[Term, Term], Term], other: object) -> "Condition":
        return Condition(self.world, combine(self.term, formula(self.world, other)))

    def __and__(self, other: object) -> "Condition":
        return self._with(z3.And, other)

    def __or__(self, other: object) -> "Condition":
        return self._with(z3.Or, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> "Condition":
        return Condition(self.world, z3.Not(self.term))

    def __eq__(self, other: object) -> "Condition":  # type: ignore[override]
        return self._with(lambda mine, others: mine == others, other)

    def __ne__(self, other: object) -> "Condition":  # type: ignore[override]
        return self._with(z3.Xor, other)


class Index:
    """A symbolic integer: a linear z3 term, with Python's meaning of every operation that it has.

    It is no `int`, and nothing can keep a scheme from asking for that: one that does something else with ints is judged by
    what it does with indices, but for the small instances that are tried too.
    """

    __slots__ = ("term", "world")

    def __init__(self, world: World, term: Term) -> None:
        self.world, self.term = world, term

    def _lift(self, other: object) -> Term:
        return term_of(self.world, other)

    def __add__(self, other: object) -> "Index":
        return Index(self.world, self.term + self._lift(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> "Index":
        return Index(self.world, self.term - self._lift(other))

    def __rsub__(self, other: object) -> "Index":
        return Index(self.world, self._lift(other) - self.term)

    def __neg__(self) -> "Index":
        return Index(self.world, -self.term)

    def __pos__(self) -> "Index":
        return self

    def __mul__(self, other: object) -> "Index":
        return Index(self.world, self.world.product(self.term, self._lift(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> "Index":
        return Index(self.world, self.world.quotient(self.term, self._lift(other)))

    def __rfloordiv__(self, other: object) -> "Index":
        return Index(self.world, self.world.quotient(self._lift(other), self.term))

    def __mod__(self, other: object) -> "Index":
        return Index(self.world, self.world.remainder(self.term, self._lift(other)))

    def __rmod__(self, other: object) -> "Index":
        return Index(self.world, self.world.remainder(self._lift(other), self.term))

    def __divmod__(self, other: object) -> "tuple[Index, Index]":
        return self // other, self % other

    def __rdivmod__(self, other: object) -> "tuple[Index, Index]":
        return self.__rfloordiv__(other), self.__rmod__(other)

    def __abs__(self) -> "Index":
        return -self if self < 0 else self

    def __lt__(self, other: object) -> Condition:
        return Condition(self.world, self.term < self._lift(other))

    def __le__(self, other: object) -> Condition:
        return Condition(self.world, self.term <= self._lift(other))

    def __gt__(self, other: object) -> Condition:
        return Condition(self.world, self.term > self._lift(other))

    def __ge__(self, other: object) -> Condition:
        return Condition(self.world, self.term >= self._lift(other))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(self.world, self.term == self._lift(other))

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(self.world, self.term != self._lift(other))

    def __bool__(self) -> bool:
        return self.world.decide(self.term != 0)

    def __hash__(self) -> NoReturn:
        raise self.world.refuse(
            f"a symbolic index is used as the key of a dict or the member of a set: compare it with ==; {INDEXED}"
        )

    def __index__(self) -> NoReturn:
        raise self.world.refuse(
            "a symbolic index is used as a concrete number (range, a list's index, a slice): let the scheme's own steps be the "
            f"loop; {INDEXED}"
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise self.world.refuse(f"a symbolic index has no {name!r}: an index can do + - * // % divmod abs min max and comparisons")


def _refuses(what: str, name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: Index | Condition, *_: object) -> NoReturn:
        raise self.world.refuse(f"{what} can't do {name}: {instead}")

    return refuse


_INTEGERS, _TRUTH = "use + - * // % and comparisons", "ask for its truth with `if`: it is no number"
_Refused: TypeAlias = tuple[tuple[str, ...], str, str]
_AS_TEXT: _Refused = (("__repr__", "__str__", "__format__"), "what text can", "name buffers, events and streams with fixed strings")
_NO_INDEX: tuple[_Refused, ...] = (
    (("__truediv__", "__rtruediv__"), "/", "use //, an index is an integer"),
    (("__float__", "__complex__"), "float()", "an index is an integer"),
    (("__int__",), "int()", "leave it an index"),
    (("__pow__", "__rpow__"), "**", _INTEGERS),
    (("__lshift__", "__rlshift__", "__rshift__", "__rrshift__"), "<< or >>", "use * or // by a number"),
    (("__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__", "__invert__"), "bit operations", _INTEGERS),
    (("__round__", "__trunc__", "__floor__", "__ceil__"), "rounding", "an index is an integer"),
    (("__iter__", "__len__", "__getitem__", "__contains__", "__call__"), "what a container or a function can", _INTEGERS),
    _AS_TEXT,
)
_NO_CONDITION: tuple[_Refused, ...] = (
    (("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"), "arithmetic", _TRUTH),
    (("__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__neg__", "__pos__", "__abs__"), "arithmetic", _TRUTH),
    (("__lt__", "__le__", "__gt__", "__ge__"), "< or >", _TRUTH),
    (("__index__", "__int__", "__float__"), "what a number can", _TRUTH),
    (("__hash__",), "what a dict's key can", "choose with `if` instead"),
    _AS_TEXT,
)
for _class, _what, _table in ((Index, "a symbolic index", _NO_INDEX), (Condition, "the truth of a comparison", _NO_CONDITION)):
    for _methods, _name, _instead in _table:
        for _method in _methods:
            setattr(_class, _method, _refuses(_what, _name, _instead))


def term_of(world: World, value: object) -> Term:
    """The z3 term of an index or an int. Raises UnsupportedError for anything else."""
    if isinstance(value, Index):
        return value.term
    if isinstance(value, int) and not isinstance(value, bool):
        return z3.IntVal(int(value), world.context)  # a member of an enum is written as its name
    instead = f"; {INDEXED}" if isinstance(value, list | tuple) else ""
    raise world.refuse(f"a symbolic index meets {_described(value)}: only integers can be compared and computed with{instead}")


def formula(world: World, value: object) -> Term:
    """The z3 formula of a condition or a bool. Raises UnsupportedError for anything else."""
    if isinstance(value, Condition):
        return value.term
    if isinstance(value, bool):
        return z3.BoolVal(value, world.context)
    raise world.refuse(f"a condition meets {_described(value)}: only conditions can be combined with & and |")


def as_int(index: Index) -> int:
    """An index under the type that schemes are written for."""
    return cast(int, index)


def _described(value: object) -> str:
    if isinstance(value, Index | Condition):
        return "a symbolic index" if isinstance(value, Index) else "the truth of a comparison"
    return "a raw solver term" if isinstance(value, z3.AstRef) else f"{value!r} ({type(value).__name__})"
