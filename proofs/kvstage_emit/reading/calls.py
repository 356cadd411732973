"""Calls: of functions that are read as text, of what has a C++ of its own, and of all else as Python does it."""

import ast
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from kvstage_model.language.parameters import Declared
from kvstage_model.language.scheme import Result

from .expressions import Evaluator
from .number import CHOICE, Expression, Number, bound, twin
from .refusal import EmitError
from .source import is_read
from .values import Readable, RunList, Scope

CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "add", "update", "remove", "clear", "setdefault", "sort", "reverse", "discard", "popitem")
)
"""Methods that change a container: in a branch that C++ takes or not, Python can't perform them beforehand."""


class Caller(Evaluator):
    """Calls, beside the other expressions."""

    def function(self, function: FunctionType) -> Readable:
        """A Python function as one that is read."""
        raise NotImplementedError

    def helper(self, function: FunctionType) -> Callable[..., Any] | None:
        """A function of runs and numbers as one in C++, or None if it is none."""
        raise NotImplementedError

    def _call(self, node: ast.Call, scope: Scope, file: str) -> Any:
        function = self.eval(node.func, scope, file)
        values = self._items(node.args, scope, file)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            held = self.eval(keyword.value, scope, file)
            named |= held if keyword.arg is None else {keyword.arg: held}
        before = len(self.lines.written), [set(names) for names in self.lines.blocks]
        returned = self.call(function, values, named)
        if isinstance(returned, Result):  # what the proof alone needs: no line is kept for it
            self._back_to(before)
        return returned

    def call(self, function: Any, values: list[Any], named: dict[str, Any]) -> Any:
        """What a call returns: of a function that is read, or as Python calls it."""
        if function in (min, max) and any(isinstance(value, Expression) for value in values):
            typed = "" if all(isinstance(value, Expression) for value in values) else "<Index>"
            texts = ", ".join(bound(value, CHOICE) for value in values)
            whole = f"std::{function.__name__}{typed}({texts if len(values) == 2 else f'{{{texts}}}'})"
            return Number(self.knowledge, whole, twin=self._least(function, values))
        if function is len and isinstance(values[0], RunList):
            return values[0].length
        if isinstance(function, Declared):
            return self.call(function.function, values, named)
        if isinstance(function, FunctionType) and is_read(function):
            helper = self.helper(function)
            return helper(*values) if helper is not None else self.function(function)(*values, **named)
        if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType) and is_read(function.__func__):
            return self.function(function.__func__)(function.__self__, *values, **named)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, list | dict | set) and function.__name__ in CHANGING and self.lines.depth:
            raise EmitError(f"{function.__name__!r} changes a container in a step: what a step does depends on its index alone")
        return function(*values, **named)

    def _least(self, function: Any, values: list[Any]) -> Any:
        """A new index that is known to be the least, or the greatest, of two."""
        twins = [twin(value) for value in values]
        if len(twins) != 2 or any(each is None for each in twins):
            return None
        world, (a, b) = self.knowledge.world, twins
        found = world.integer(f"{function.__name__} {len(world.facts)}")
        lower = function is min
        world.assume((found == a) | (found == b), *((found <= each) if lower else (found >= each) for each in twins))
        return found
