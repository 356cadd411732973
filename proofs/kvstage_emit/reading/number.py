"""Numbers and truths that are C++ expressions, each beside the symbolic index that the prover would have in its place.

The index answers what C++ must know: `/` and `%` mean what Python means only if both operands are not negative. If the
prover can't show that, or the index is not known, a helper with Python's meaning is called.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.world import World

from .refusal import EmitError

ATOM, UNARY, TIMES, PLUS, LESS, EQUAL, AND, OR, CHOICE = 9, 8, 6, 5, 4, 3, 2, 1, 0
"""How tightly a C++ expression binds."""


class Knowledge:
    """What the prover knows of the indices, on the path that is being written."""

    def __init__(self) -> None:
        self.world = World()
        self._conditions: list[Any] = []

    @contextmanager
    def assuming(self, *conditions: Any) -> Iterator[None]:
        """Inside, the conditions hold; None stands for one that nothing is known of."""
        before = len(self._conditions)
        self._conditions += [self.world.formula(condition) for condition in conditions if condition is not None]
        yield
        del self._conditions[before:]

    def assume(self, condition: Any) -> None:
        """From now on, it holds."""
        if condition is not None:
            self._conditions.append(self.world.formula(condition))

    def at_least(self, index: Any, least: int) -> bool:
        """Whether an index is provably no less."""
        if index is None:
            return False
        return self.world.impossible(*self._conditions, self.world.term(index) < least)

    def known(self, compute: Callable[[], Any]) -> Any:
        """An index or condition, or None if the model has no meaning for it."""
        try:
            return compute()
        except UnsupportedError:
            return None


class Expression:
    """A C++ expression: its text, how tightly it binds, and its symbolic twin if there is one."""

    __slots__ = ("knowledge", "level", "text", "twin")

    def __init__(self, knowledge: Knowledge, text: str, level: int = ATOM, twin: Any = None) -> None:
        self.knowledge, self.text, self.level, self.twin = knowledge, text, level, twin

    def bound(self, level: int) -> str:
        """The text, in parentheses if it binds less tightly."""
        return self.text if self.level >= level else f"({self.text})"

    def _both(self, other: object, combine: Callable[[Any, Any], Any]) -> Any:
        mine, others = self.twin, twin(other)
        return None if mine is None or others is None else self.knowledge.known(lambda: combine(mine, others))

    def __hash__(self) -> NoReturn:
        raise EmitError("a number of the scheme is the key of a dict or the member of a set")

    def __str__(self) -> NoReturn:
        raise EmitError("a number of the scheme is used as text")

    __repr__ = __format__ = __str__  # type: ignore[assignment]

    def __index__(self) -> NoReturn:
        raise EmitError("a number of the scheme is used as a list's index, or in a range of Python's")


def bound(value: object, level: int) -> str:
    """The C++ text of a number or truth, in parentheses if it binds less tightly than `level`. Raises EmitError for others."""
    if isinstance(value, Expression):
        return value.bound(level)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value >= 0 or level <= UNARY else f"({value})"
    raise EmitError(f"{type(value).__name__} {value!r} is no number")


def twin(value: object) -> Any:
    """The symbolic index of a number; a plain one is its own."""
    return value.twin if isinstance(value, Expression) else value


class Truth(Expression):
    """A condition. Python's own code can't ask for its truth: only what is read here may branch on it."""

    def __bool__(self) -> NoReturn:
        raise EmitError("a condition decides in code that is not read as text: write it as an `if` of the scheme's own")

    def _with(self, other: object, sign: str, level: int, combine: Callable[[Any, Any], Any]) -> "Truth":
        inside = level if level == AND else EQUAL  # compilers warn of && inside || without parentheses
        text = f"{self.bound(inside)} {sign} {bound(other, inside)}"
        return Truth(self.knowledge, text, level, self._both(other, combine))

    def __and__(self, other: object) -> "Truth":
        return self._with(other, "&&", AND, lambda a, b: a & b)

    def __or__(self, other: object) -> "Truth":
        return self._with(other, "||", OR, lambda a, b: a | b)

    def __eq__(self, other: object) -> "Truth":  # type: ignore[override]
        return self._same(other, "==", lambda a, b: a == b)

    def __ne__(self, other: object) -> "Truth":  # type: ignore[override]
        return self._same(other, "!=", lambda a, b: a != b)

    def _same(self, other: object, sign: str, combine: Callable[[Any, Any], Any]) -> "Truth":
        if not isinstance(other, Truth | bool):
            raise EmitError("a condition is compared with what is none")
        return Truth(self.knowledge, f"{self.bound(PLUS)} {sign} {bound(other, PLUS)}", EQUAL, self._both(other, combine))

    __hash__ = Expression.__hash__

    def __invert__(self) -> "Truth":
        return Truth(self.knowledge, f"!{self.bound(UNARY)}", UNARY, self._not())

    def _not(self) -> Any:
        if self.twin is None:
            return None
        return not self.twin if isinstance(self.twin, bool) else ~self.twin


def negated(condition: object) -> Any:
    """The symbolic twin of what holds if a condition does not."""
    return condition._not() if isinstance(condition, Truth) else not condition


class Number(Expression):
    """An integer of the scheme."""

    def _arithmetic(self, other: object, sign: str, level: int, combine: Callable[[Any, Any], Any], turned: bool) -> "Number":
        left, right = (other, self) if turned else (self, other)
        text = f"{bound(left, level)} {sign} {bound(right, level + 1)}"
        return Number(self.knowledge, text, level, self._both(other, (lambda a, b: combine(b, a)) if turned else combine))

    def __add__(self, other: object) -> "Number":
        return self._arithmetic(other, "+", PLUS, lambda a, b: a + b, False)

    def __radd__(self, other: object) -> "Number":
        return self if other == 0 else self._arithmetic(other, "+", PLUS, lambda a, b: a + b, True)

    def __sub__(self, other: object) -> "Number":
        return self._arithmetic(other, "-", PLUS, lambda a, b: a - b, False)

    def __rsub__(self, other: object) -> "Number":
        return self._arithmetic(other, "-", PLUS, lambda a, b: a - b, True)

    def __mul__(self, other: object) -> "Number":
        return self._arithmetic(other, "*", TIMES, lambda a, b: a * b, False)

    def __rmul__(self, other: object) -> "Number":
        return self._arithmetic(other, "*", TIMES, lambda a, b: a * b, True)

    def _divided(self, other: object, sign: str, helper: str, combine: Callable[[Any, Any], Any], turned: bool) -> "Number":
        left, right = (other, self) if turned else (self, other)
        index = self._both(other, (lambda a, b: combine(b, a)) if turned else combine)
        if self.knowledge.at_least(twin(left), 0) and self.knowledge.at_least(twin(right), 1):
            return Number(self.knowledge, f"{bound(left, TIMES)} {sign} {bound(right, TIMES + 1)}", TIMES, index)
        return Number(self.knowledge, f"{helper}({bound(left, CHOICE)}, {bound(right, CHOICE)})", ATOM, index)

    def __floordiv__(self, other: object) -> "Number":
        return self._divided(other, "/", "floor_div", lambda a, b: a // b, False)

    def __rfloordiv__(self, other: object) -> "Number":
        return self._divided(other, "/", "floor_div", lambda a, b: a // b, True)

    def __mod__(self, other: object) -> "Number":
        return self._divided(other, "%", "floor_mod", lambda a, b: a % b, False)

    def __rmod__(self, other: object) -> "Number":
        return self._divided(other, "%", "floor_mod", lambda a, b: a % b, True)

    def __divmod__(self, other: object) -> "tuple[Number, Number]":
        return self // other, self % other

    def __rdivmod__(self, other: object) -> "tuple[Number, Number]":
        return self.__rfloordiv__(other), self.__rmod__(other)

    def __neg__(self) -> "Number":
        return Number(self.knowledge, f"-{self.bound(ATOM)}", UNARY, None if self.twin is None else -self.twin)

    def __pos__(self) -> "Number":
        return self

    def __abs__(self) -> "Number":
        return Number(self.knowledge, f"std::abs({self.text})", ATOM)

    def _compared(self, other: object, sign: str, level: int, combine: Callable[[Any, Any], Any]) -> Truth:
        text = f"{self.bound(PLUS)} {sign} {bound(other, PLUS)}"
        return Truth(self.knowledge, text, level, self._both(other, combine))

    def __lt__(self, other: object) -> Truth:
        return self._compared(other, "<", LESS, lambda a, b: a < b)

    def __le__(self, other: object) -> Truth:
        return self._compared(other, "<=", LESS, lambda a, b: a <= b)

    def __gt__(self, other: object) -> Truth:
        return self._compared(other, ">", LESS, lambda a, b: a > b)

    def __ge__(self, other: object) -> Truth:
        return self._compared(other, ">=", LESS, lambda a, b: a >= b)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return self._compared(other, "==", EQUAL, lambda a, b: a == b)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return self._compared(other, "!=", EQUAL, lambda a, b: a != b)

    __hash__ = Expression.__hash__

    def __bool__(self) -> NoReturn:
        raise EmitError("a number decides in code that is not read as text: write it as an `if` of the scheme's own")
