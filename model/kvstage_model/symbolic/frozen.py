"""Kinds of values that can't change: which classes make such, what is inside them, and what all others are called."""

import dataclasses
import enum
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from numbers import Integral
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, Generic, Protocol

BASES = (
    object,
    Generic,
    Protocol,
    tuple,
    int,
    str,
    float,
    Exception,
    BaseException,
    enum.Enum,
    enum.IntEnum,
    enum.StrEnum,
    enum.Flag,
)
MADE_BY_PYTHON = ("dataclasses", "reprlib", "enum", "typing", "abc", "collections", "_collections_abc", "builtins")
"""Modules whose functions classes get without having written them."""


def is_stdlib(module: str) -> bool:
    """Whether a module is of Python's own library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def is_frozen(kind: type) -> bool:
    """Whether instances of a class can't change: a frozen dataclass, a named tuple, an enum, or an error to raise."""
    params = vars(kind).get("__dataclass_params__")
    if is_dataclass(kind):
        return bool(params is None or params.frozen)
    return issubclass(kind, enum.Enum | Exception) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def made_of(kind: type) -> frozenset[str]:
    """The names of a dataclass's fields: how they begin is asked whenever one is made."""
    return frozenset(field.name for field in dataclasses.fields(kind)) if is_dataclass(kind) else frozenset()


def members_of(kind: type) -> dict[str, Any]:
    """What a class and its bases define, by name: functions as functions, and what its fields begin with."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base not in BASES and base.__module__ not in MADE_BY_PYTHON:
            found |= {name: member for name, inner in vars(base).items() for member in _member(base, name, inner)}
    for field in dataclasses.fields(kind) if is_dataclass(kind) else ():
        made = field.default_factory
        found[field.name] = made if made is not dataclasses.MISSING else None
    if issubclass(kind, enum.Enum):
        found |= {name: member.value for name, member in kind.__members__.items()}
    return found


def _member(base: type, name: str, inner: Any) -> Iterator[Any]:
    """The function or value behind a name of a class, unless Python made it."""
    if isinstance(inner, staticmethod | classmethod):
        inner = inner.__func__
    if name == "__signature__":  # for inspect alone
        return
    if isinstance(inner, property):
        yield from (inner.fget,) if inner.fget is not None else ()
    elif isinstance(inner, FunctionType):
        code, module = inner.__code__, str(inner.__globals__.get("__name__", ""))
        made = code.co_filename == "<string>" and name.startswith(("__", "_")) and (is_dataclass(base) or hasattr(base, "_fields"))
        if not made and module not in MADE_BY_PYTHON:
            yield inner
    elif isinstance(inner, MemberDescriptorType | GetSetDescriptorType) or _is_pythons(base, name, inner):
        return
    elif issubclass(base, tuple) and type(inner).__name__ == "_tuplegetter":
        yield None
    elif isinstance(inner, enum.Enum) or (issubclass(base, enum.Enum) and isinstance(inner, enum.property)):
        return
    elif name not in ("__hash__", "__class_getitem__"):
        yield inner


def _is_pythons(base: type, name: str, inner: object) -> bool:
    """Whether a name of a class is there for Python's own sake: its documentation, its fields, an enum's tables."""
    if name.startswith("__"):
        return not callable(inner)
    return name.startswith(("_abc", "_is_")) or (name.startswith("_") and issubclass(base, enum.Enum | tuple))


CAN_CHANGE = "which can change: a step may reach numbers, strings, tuples, frozen dataclasses, and functions of such"
INSTEAD: dict[str, str] = {
    "list": "a list, which can change: make it a tuple",
    "dict": "a dict, which can change: make it a types.MappingProxyType, or choose with `if`",
    "set": "a set, which can change: make it a tuple",
    "_lru_cache_wrapper": "a cache, which remembers: call the function itself",
    "cached_property": "a cached property, which remembers: make it a property",
    "ContextVar": "a ContextVar, which can change: hand its value in as a parameter",
}


def described(value: object) -> str:
    """What a value is that is not allowed, and what to write instead."""
    name = type(value).__name__
    if isinstance(value, ModuleType):
        return f"the module {value.__name__!r}: name what of it is used, and of Python's own nothing but what the language has"
    if name in INSTEAD:
        return INSTEAD[name]
    if isinstance(value, Iterator):
        return f"an iterator ({name}), which moves on whenever it is asked: compute it from the index, or list it in a tuple"
    if isinstance(value, Integral):
        return f"a number of type {name}, which is no int: write int(...) around it where it is made"
    if isinstance(value, type):
        return f"the class {value.__name__}, whose instances can change or do what nobody can read: make it a frozen dataclass"
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__!r} of {getattr(value, '__module__', None) or 'Python'}, which has no meaning in the model: {CALLS}"
    return f"of type {name}, {CAN_CHANGE}"


CALLS = "a step may call the language's own names, arithmetic such as min and max, and functions whose text passes this check"
