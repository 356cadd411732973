"""Schemes in a user's file: loaded, guarded, and the obligations that are stated of them."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction, unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from kvstage_model.language.parameters import Declared, ParameterError, SchemeFunction, declared
from kvstage_model.language.scheme import CALLER
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.scheme_model import SchemeModel

from ..catalogue.catalogue import OF_A_SCHEME
from ..obligation import Obligation
from ..theorems.t3_result import T3
from .guard import Guard, SchemeFileError

SUFFIX = ".py"


def is_file(target: str) -> bool:
    """Whether a target is a scheme in a file: `file.py:scheme`."""
    return target.endswith(SUFFIX) or f"{SUFFIX}:" in target


def of_file(target: str) -> Iterator[Obligation]:
    """The obligations of a user's scheme: T1, T6 and T7, and T3 if it states a result. All must be PROVED."""
    function = load(target)
    for theorem in OF_A_SCHEME:
        if theorem is not T3 or _states_a_result(function, target):
            yield theorem.of(function, target)


def load(target: str) -> Declared:
    """The scheme function that `file.py:scheme` names, guarded. Raises SchemeFileError if there is none."""
    guard, function = _found(target)
    return guard.scheme_function(function, guard.call(f"reading the parameters of {guard.name}", _parameters, guard, function))


def plain(target: str) -> SchemeFunction:
    """The same function as its file has it, so that its text can be read."""
    return _found(target)[1]


def _found(target: str) -> tuple[Guard, SchemeFunction]:
    """The function that `file.py:scheme` names, and a guard for it."""
    shown, name = _split(target)
    if not os.path.isfile(shown):
        raise SchemeFileError(f"there is no file {shown!r}")
    guard = Guard(shown, os.path.abspath(shown), name)
    module = guard.call("importing it", _imported, guard.file)
    if not hasattr(module, name):
        own = [each for each, value in vars(module).items() if isfunction(value) and value.__module__ == module.__name__]
        asked = f"has no {name!r}" if name else "is a file: say which of its schemes"
        raise SchemeFileError(f"{shown} {asked}; its functions are: {', '.join(own) or 'none'}")
    function: Any = getattr(module, name)
    if not callable(function):
        raise SchemeFileError(f"{shown}: {name} is no function but {type(function).__name__} {function!r}")
    return guard, function


def line_of(target: str) -> tuple[str, int]:
    """The file of a scheme that was loaded, as the user gave it, and the line where it is defined; 1 if that is not plain."""
    shown, name = _split(target)
    file = os.path.abspath(shown)
    code = getattr(unwrap(getattr(_imported(file), name)), "__code__", None)
    if code is not None and code.co_filename == file:
        return shown, int(code.co_firstlineno)
    bound = re.compile(rf"\s*{re.escape(name)}\s*[:=]")  # made by another function: where it got its name
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return shown, next((number for number, line in enumerate(lines, 1) if bound.match(line)), 1)


def _split(target: str) -> tuple[str, str]:
    """The file and the scheme of `file.py:scheme`; no scheme if there is none."""
    shown, colon, name = target.rpartition(f"{SUFFIX}:")
    return (shown + SUFFIX, name) if colon else (target, "")


def _parameters(guard: Guard, function: Callable[..., Any]) -> Any:
    try:
        return declared(function)
    except ParameterError as reason:
        code = getattr(function, "__code__", None)
        line = f":{code.co_firstlineno}" if code is not None else ""
        raise SchemeFileError(f"{guard.shown}{line}: {reason}") from reason


def _imported(file: str) -> ModuleType:
    """The module of a file, which finds its neighbours as it would where it is run."""
    name = f"scheme file {file}"  # no import statement can spell it, so it hides no other module
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, file)
    assert spec is not None, "its name ends in .py"
    assert spec.loader is not None, "a file has a loader"
    module = module_from_spec(spec)
    folder = str(Path(file).parent)
    sys.modules[name] = module  # dataclasses look their own module up while it is imported
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
    return module


def _states_a_result(function: Declared, target: str) -> bool:
    """Whether a scheme states a result. Raises SchemeFileError if it has no operation at all."""
    try:
        model = SchemeModel(function)
        call, step = model.world.integer("call"), model.world.integer("i")
        (stated,) = model.value(call, lambda scheme: (scheme.result is not None,))
        own = [number for number, name in enumerate(model.names) if not stated or name != CALLER]
        some = any(model.instances("any", call, number, step) for number in own)
    except UnsupportedError:
        return False  # each of its obligations says why
    if not some:
        raise SchemeFileError(f"{target} yields no operation at all: there is nothing to judge")
    return stated
