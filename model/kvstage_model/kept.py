"""What a function can keep from one run to the next: the lists, dicts and variables that it reaches.

A step must depend on its index and its parameters alone. One that notes down what it did is found by comparing what it
reaches before it runs and after, even where no run of the proof would do anything else for it yet.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

PLAIN = (int, float, complex, str, bytes, type(None))
"""What is compared by value: it can't change, and a variable that holds it may be given another one."""
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
PROVER = ("kvstage_model.arguments", "kvstage_model.symbolic", "kvstage_model.world")
"""Where the prover itself notes down what it met: the arguments that it hands to a scheme, and its own numbers."""
OWN = ("kvstage_model.", "kvstage_proofs.")
"""Modules whose global names hold nothing that changes."""

MOST = 10_000
"""How many objects are looked at: a function may reach a whole program."""


@dataclass(frozen=True, eq=False)
class Kept:
    """Everything that a function reaches, and what it held when this was made."""

    reached: tuple[tuple[object, tuple[object, ...]], ...]

    @classmethod
    def by(cls, function: Callable[..., object]) -> "Kept":
        """What a function reaches by its closure, its defaults, the names of its module, and the objects in them."""
        seen: dict[int, tuple[object, tuple[object, ...]]] = {}
        waiting: list[object] = [function]
        while waiting and len(seen) < MOST:
            value = waiting.pop()
            if id(value) not in seen and _module(value) not in PROVER:
                held = tuple(_held(value))
                seen[id(value)] = value, tuple(map(_mark, held))
                waiting += [each for each in held if not isinstance(each, (*PLAIN, type, ModuleType))]
        return cls(tuple(seen.values()))

    def changed(self) -> bool:
        """Whether any of it holds something else by now."""
        return any(tuple(map(_mark, _held(value))) != marks for value, marks in self.reached)


def _module(value: object) -> str:
    """The module of a function, or of the class of anything else."""
    return str(getattr(value if isinstance(value, FunctionType) else type(value), "__module__", ""))


def _mark(value: object) -> object:
    """What stands for a value in a comparison: itself where it is plain, else which object it is."""
    return (type(value), value) if isinstance(value, PLAIN) else id(value)


def _held(value: Any) -> Iterator[object]:
    """What a value holds, in an order that stays while nothing changes."""
    match value:
        case dict():
            yield from value.keys()
            yield from value.values()
        case list() | tuple() | set() | frozenset() | deque():
            yield from value
        case CellType():
            yield from _in_cell(value)
        case MethodType():
            yield from (value.__func__, value.__self__)
        case partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case FunctionType():
            yield from (*(value.__closure__ or ()), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
            if not value.__module__.startswith(OWN):
                yield from _globals(value)
        case _ if is_dataclass(value):
            yield from (getattr(value, field.name) for field in fields(value))
        case _:
            yield from getattr(value, "__dict__", {}).values()


def _in_cell(cell: CellType) -> Iterator[object]:
    try:
        yield cell.cell_contents
    except ValueError:  # a variable that is not yet bound
        return


def _globals(function: FunctionType) -> Iterator[object]:
    """What the names of a function's module stand for that it uses: what may change, and functions of the same module."""
    for name in sorted(set(_names(function.__code__))):
        value = function.__globals__.get(name)
        same_module = isinstance(value, FunctionType) and value.__globals__ is function.__globals__
        if same_module or isinstance(value, (*PLAIN, *CONTAINERS)) or _module(value) == function.__module__:
            yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
