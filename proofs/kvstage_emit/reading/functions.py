"""Functions: their arguments are bound and their statements run; one of runs and numbers becomes a function in C++ too."""

import ast
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, get_type_hints

from kvstage_model.language.buffers import Rows

from .calls import Caller
from .lines import Lines, text, useful
from .liveness import FUNCTIONS, yields
from .number import Number, Truth
from .refusal import EmitError
from .source import free_variables, node_of
from .values import STRUCTS, Readable, Scope, struct, value_text

Steps = Generator[Any, None, Any]
"""A function while it runs: hands out operations, and returns what the function returns."""

NOTHING = object()
"""What a function returns that has not returned yet."""


class Functions(Caller):
    """Functions that are read, and those that C++ has as functions."""

    def __init__(self, lines: Lines, decisions: tuple[bool, ...] = ()) -> None:
        super().__init__(lines, decisions)
        self.helpers: dict[str, str] = {}
        self.read: dict[str, FunctionType] = {}
        self.name_of_rows: dict[int, tuple[Rows, str, set[str]]] = {}
        self.suspended = 0
        self.where = ""
        self._changing: set[str] = set()

    def function(self, function: FunctionType) -> Readable:
        """A Python function as one that is read."""
        self.read[f"{function.__module__}.{function.__qualname__}"] = function
        scope = Scope(free_variables(function), Scope(function.__globals__))
        return Readable(node_of(function), scope, function.__code__.co_filename, self.run)

    def nested(self, node: FUNCTIONS, scope: Scope, file: str) -> Readable:
        """A function in a function."""
        return Readable(node, scope, file, self.run)

    def run(self, function: Readable, values: Sequence[Any], named: dict[str, Any]) -> Any:
        """Calls a function that is read."""
        scope = Scope(self._arguments(function, values, named), function.scope)
        if isinstance(function.node, ast.Lambda):
            with self._at(function.node, function.file):
                return self.eval(function.node.body, scope, function.file)
        kept = _read_in_functions(function.node)
        steps = self._block(function.node.body, scope, function.file, kept)
        if yields(function.node):
            return self._operations(steps)
        try:
            next(steps)
        except StopIteration as ended:
            return None if ended.value is NOTHING else ended.value
        raise EmitError(f"{function.name} yields, and is no generator")

    @staticmethod
    def _operations(steps: Steps) -> Iterator[Any]:
        yield from steps

    def _arguments(self, function: Readable, values: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        given = function.node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        found: dict[str, Any] = {}
        for name, default in zip(reversed(names), reversed(given.defaults), strict=False):
            found[name] = self.eval(default, function.scope, function.file)
        for each, keyword in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if keyword is not None:
                found[each.arg] = self.eval(keyword, function.scope, function.file)
        found |= dict(zip(names, values, strict=False))
        known = {*names, *(each.arg for each in given.kwonlyargs)}
        found |= {name: value for name, value in named.items() if name in known}
        if given.vararg is not None:
            found[given.vararg.arg] = tuple(values[len(names) :])
        if given.kwarg is not None:
            found[given.kwarg.arg] = {name: value for name, value in named.items() if name not in known}
        return found

    def helper(self, function: FunctionType) -> Callable[..., Any] | None:
        """A function of runs and numbers at the top of its file: a function in C++ too."""
        if function.__closure__ or function.__qualname__ != function.__name__ or inspect.isgeneratorfunction(function):
            return None
        hints = get_type_hints(function)
        kinds = [each if each in (int, bool, *STRUCTS) else None for each in hints.values()]
        if None in kinds or not set(STRUCTS) & set(kinds) or len(hints) != function.__code__.co_argcount + 1:
            return None
        if function.__name__ not in self.helpers:
            self.helpers[function.__name__] = self._helper(function, hints)
        returned = hints["return"]

        def called(*values: Any) -> Any:
            whole = f"{function.__name__}({', '.join(map(value_text, values))})"
            if returned in STRUCTS:
                return struct(self.knowledge, returned, whole)
            return (Truth if returned is bool else Number)(self.knowledge, whole)

        return called

    def _helper(self, function: FunctionType, hints: dict[str, Any]) -> str:
        names = list(hints)[:-1]
        inner = type(self)(Lines(names))
        kinds = {name: {int: "Index", bool: "bool"}.get(hints[name], f"const {hints[name].__name__}&") for name in names}
        values = [
            struct(inner.knowledge, hints[name], name) if hints[name] in STRUCTS else Number(inner.knowledge, name)
            for name in names
        ]
        value = inner.function(function)(*values)
        returned = value_text(value)
        kind = {int: "Index", bool: "bool"}.get(hints["return"], hints["return"].__name__)
        head = f"inline {kind} {function.__name__}({', '.join(f'{kinds[name]} {name}' for name in names)}) {{\n"
        return f"{head}{text(useful(inner.lines.written, returned), 1)}    return {returned};\n}}\n"

    def _block(self, statements: Sequence[ast.stmt], scope: Scope, file: str, after: frozenset[str]) -> Steps:
        """Runs statements up to the first return; `after` are the names that are needed once they have run."""
        raise NotImplementedError

    @contextmanager
    def _at(self, node: ast.AST, file: str) -> Iterator[None]:
        """Errors inside are told with the line of a statement."""
        try:
            yield
        except EmitError as reason:
            if getattr(reason, "told", False):
                raise
            told = EmitError(f"{file}:{getattr(node, 'lineno', '?')}: {reason}")
            told.told = True  # type: ignore[attr-defined]
            raise told from reason
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            told = EmitError(f"{file}:{getattr(node, 'lineno', '?')}: there is no C++ for this: {error}")
            told.told = True  # type: ignore[attr-defined]
            raise told from error


def _read_in_functions(node: ast.FunctionDef) -> frozenset[str]:
    """The names that functions in a function read: these may be called at any later time."""
    inner = [each for each in ast.walk(node) if isinstance(each, FUNCTIONS) and each is not node]
    return frozenset(each.id for function in inner for each in ast.walk(function) if isinstance(each, ast.Name))
