"""A scheme is a function of its numbers and parameters by construction: all that it reaches is made of what is allowed.

The text of the scheme function, of its steps and of all that they call is read (`whitelist`), and what its names stand for is
looked at here: numbers, strings, tuples, frozen records, enums, and functions that pass the same check. Nothing of that can
change, and no text can change it, so a step that has been proved is the step that runs.
"""

import builtins
import dataclasses
import enum
import functools
import typing
from abc import ABCMeta
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import lru_cache, partial
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
)
from typing import Any

from .. import language
from ..language.parameters import Declared
from .errors import UnsupportedError
from .frozen import described, is_frozen, is_stdlib, made_of, members_of
from .source import NoSourceError, definition_of, place_of
from .whitelist import MEMBER, RECORD_KIND, TEXT, NotAllowedError, Use, Uses, uses_of

PLAIN = (int, bool, float, complex, str, bytes, type(None), type(Ellipsis), range)
"""What can't change. Exactly these: a subclass may."""
BUILTINS = frozenset(
    id(getattr(builtins, name))
    for name in (
        *("abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "int", "len", "list", "map", "max"),
        *("min", "range", "reversed", "round", "sorted", "str", "sum", "tuple", "zip"),
    )
)
"""What of Python's own a step may call: results follow from their arguments, and an index refuses what it has no meaning for."""
LIBRARY = frozenset(map(id, (dataclasses.replace, functools.partial, typing.cast)))
OWN = ("kvstage_model.", "kvstage_proofs.")
OWN_BUILTINS = frozenset(map(id, (isinstance, getattr, next, type, dataclasses.fields)))
"""What the model's own text may call beside: it asks records for their kinds and fields, and no numbers."""
MACHINERY = ("kvstage_model.symbolic.", "kvstage_proofs.targets.guard")
"""Modules of the prover itself: what hands a scheme its symbols, and takes its operations. They are no part of a scheme."""
METACLASSES = (type, ABCMeta, enum.EnumMeta, type(typing.Protocol))
TEXT_METHODS = ("count", "endswith", "format", "get", "index", "items", "join", "keys", "startswith", "values")
"""Methods of strings, tuples and mappings, none of which changes anything."""
AS_TEXT = ("__format__", "__repr__", "__str__")
"""What Python asks of an object when a text makes text of it."""
LANGUAGE = frozenset(
    name for kind in vars(language).values() if isinstance(kind, type) for name in members_of(kind) if not name.startswith("__")
)
"""The fields and methods of the language's records."""


def demand_pure(value: object) -> None:
    """Raises UnsupportedError, with file and line, for the first thing that a scheme, or a function, has no right to reach."""
    _Look().at(value)


class _Look:
    """One look at all that a value reaches."""

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}
        self._known = {*LANGUAGE, *TEXT_METHODS, "__name__"}
        self._asked: list[tuple[str, str]] = []
        self._wanted: set[str] = set()
        self._members: dict[str, list[tuple[object, str, str]]] = {}  # of the classes that are reached, by name
        self._place = ""

    def at(self, value: object) -> None:
        """Looks at a value, then at the attributes that texts have asked for."""
        self._value(value, "what is given")
        while wanted := sorted(self._wanted & self._members.keys()):
            for member, what, place in self._members.pop(wanted[0]):
                self._place = place
                self._value(member, what)
        for name, place in self._asked:
            if name not in self._known:
                raise UnsupportedError(
                    f"{place}: asks for the attribute {name!r}, which no frozen record has that it reaches: use fields of frozen "
                    "dataclasses, and operations of the language"
                )

    def _refuse(self, name: str, value: object) -> UnsupportedError:
        return UnsupportedError(f"{self._place}{name} is {described(value)}")

    def _value(self, value: Any, name: str) -> None:
        if type(value) in PLAIN or id(value) in BUILTINS or id(value) in LIBRARY or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        kind = type(value)
        if kind.__module__.startswith(MACHINERY):
            return
        match value:
            case Declared():
                self._value(value.function, name)
            case type():
                self._kind(value, name)
            case UnionType():
                self._values(value.__args__, name)
            case FunctionType():
                self._function(value, name)
            case MethodType():
                self._values((value.__func__, value.__self__), name)
            case partial() if kind is partial and not value.__dict__:
                self._values((value.func, *value.args, *value.keywords.values()), name)
            case MappingProxyType():
                self._values((*value.keys(), *value.values()), name)
            case MethodWrapperType() | BuiltinMethodType() if isinstance(value.__self__, tuple | str | range | MappingProxyType):
                self._value(value.__self__, name)
            case enum.Enum():
                self._kind(kind, name)
            case tuple() if kind is tuple or hasattr(kind, "_fields"):
                if kind is not tuple:
                    self._kind(kind, name)
                self._values(value, name)
            case _ if is_dataclass(kind):
                self._kind(kind, name)
                held = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(kind)}
                for field, each in {**held, **getattr(value, "__dict__", {})}.items():
                    self._value(each, f"{name}, whose {field!r}" if "whose" not in name else name)
            case _:
                raise self._refuse(name, value)

    def _values(self, values: Any, name: str) -> None:
        for each in values:
            self._value(each, name)

    # -- functions

    def _function(self, function: FunctionType, name: str) -> None:
        module = str(function.__globals__.get("__name__", ""))
        if module.startswith(MACHINERY):
            return
        if is_stdlib(module):
            raise self._refuse(name, function)
        own, code = module.startswith(OWN), function.__code__
        uses = _read(code, own)
        if isinstance(uses, UnsupportedError):
            raise UnsupportedError(str(uses))
        if function.__dict__.keys() - {"__wrapped__"}:
            raise UnsupportedError(f"{place_of(code)}: {code.co_name} has attributes, which can change: hand them in as parameters")
        outside = self._place
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._place = f"{place_of(code)}: a default of {code.co_name}: "
            self._value(default, "it")
        around = _closure(function)
        for use in uses.names:
            self._place = f"{place_of(code, use.line)}: "
            self._use(use, around, function, own)
        self._place = outside
        self._wanted.update(attribute for attribute, _ in uses.attributes)
        self._wanted.update(AS_TEXT if uses.makes_text else ())
        self._asked += [(attribute, place_of(code, line)) for attribute, line in uses.attributes if not own]

    def _use(self, use: Use, around: Mapping[str, object], function: FunctionType, own: bool) -> None:
        root, *attributes = use.path
        python: Mapping[str, object] = getattr(function, "__builtins__")  # noqa: B009 - type checkers don't know it
        for names in (around, function.__globals__, python):
            if root in names:
                value = names[root]
                break
        else:
            return  # Python raises NameError when it gets there
        name = repr(root)
        while attributes and isinstance(value, ModuleType):
            name = repr(f"{root}.{attributes[0]}")
            value = vars(value).get(attributes.pop(0))
        if own and id(value) in OWN_BUILTINS:
            return
        self._value(value, name)
        place = self._place.removesuffix(": ")
        if any(each.startswith("__") and each != "__name__" for each in attributes) and not own:
            raise UnsupportedError(f"{self._place}asks for the attribute {attributes[-1]!r}, which belongs to Python")
        self._wanted.update(attributes)
        self._asked += [(each, place) for each in attributes if not own]
        self._used(use, value, attributes)

    def _used(self, use: Use, value: object, attributes: list[str]) -> None:
        if use.used_as == RECORD_KIND and not all(is_dataclass(each) for each in _kinds(value)):
            raise UnsupportedError(
                f"{self._place}asks whether something is a {use.path[-1]}: a symbol is no int, and only records have kinds"
            )
        if use.used_as == MEMBER:
            member = getattr(value, attributes[0], None) if len(attributes) == 1 and isinstance(value, enum.EnumMeta) else None
            if isinstance(member, int) or not isinstance(member, enum.Enum):
                raise UnsupportedError(f"{self._place}`is`, which compares objects, and a symbol is none of them: compare with ==")
        if use.used_as == TEXT and not attributes and isinstance(value, FunctionType | type | partial | MethodType):
            raise UnsupportedError(f"{self._place}text of {use.path[0]!r}, which is no text nor number: write out what it says")

    # -- classes

    def _kind(self, kind: type, name: str) -> None:
        self._seen[id(kind)] = kind
        module = str(kind.__module__)
        if id(kind) in BUILTINS or (module == "builtins" and (kind in PLAIN or issubclass(kind, Exception))):
            return
        if module.startswith(MACHINERY):
            return
        if type(kind) not in METACLASSES or not (module.startswith(OWN) or is_frozen(kind)):
            raise self._refuse(name, kind)
        for each, member in members_of(kind).items():
            self._known.add(each)
            what = f"{name}, whose {each!r}"
            if (each.startswith("__") and each not in AS_TEXT) or each in made_of(kind):
                self._value(member, what)  # Python asks for it, not a text
            else:
                self._members.setdefault(each, []).append((member, what, self._place))


def _kinds(value: object) -> tuple[object, ...]:
    if isinstance(value, UnionType):
        return value.__args__
    return value if isinstance(value, tuple) else (value,)


def _closure(function: FunctionType) -> dict[str, object]:
    """The variables around a function that it uses, by name; without those that are not yet bound."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # empty
            continue
    return found


@lru_cache(maxsize=4096)
def _read(code: CodeType, own: bool) -> Uses | UnsupportedError:
    """What the text of a function uses, or why it must not."""
    try:
        return uses_of(definition_of(code), own=own)
    except NotAllowedError as reason:
        return UnsupportedError(f"{place_of(code, reason.line)}: {code.co_name} has {reason}")
    except NoSourceError as reason:
        return UnsupportedError(f"{place_of(code)}: {code.co_name} {reason}")
