"""From what the user names to obligations: names of the catalogue, and schemes in files of his own.

The order is always the same, so the k-th obligation of the same targets is the same one in every process.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction, unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from kvstage_model.model import SchemeModel
from kvstage_model.parameters import Declared, ParameterError, declared
from kvstage_model.scheme import CALLER
from kvstage_model.symbolic import UnsupportedError

from .catalogue import OF_A_SCHEME, catalogue
from .guard import Guard, SchemeError
from .obligation import Obligation, Statement
from .result import T3

SUFFIX = ".py"
MOST_NEAR = 5
"""Names that are offered in place of an unknown one."""


class TargetError(Exception):
    """A target names nothing."""


def obligations(targets: tuple[str, ...]) -> tuple[Obligation, ...]:
    """What the targets name, each obligation once: those of the catalogue in its order, then the files'.

    No target stands for the whole catalogue. Raises TargetError for an unknown name, SchemeError for a file's scheme
    that can't be judged.
    """
    files = tuple(dict.fromkeys(target for target in targets if is_file(target)))
    names = tuple(target for target in targets if not is_file(target))
    stated = tuple(catalogue())
    for name in names:
        if not any(names_it(name, obligation.statement) for obligation in stated):
            raise TargetError(_unknown(name, stated))
    chosen = [each for each in stated if not targets or any(names_it(name, each.statement) for name in names)]
    return (*chosen, *(obligation for file in files for obligation in of_file(file)))


def is_file(target: str) -> bool:
    """Whether a target is a scheme in a file: `file.py:scheme`."""
    return target.endswith(SUFFIX) or f"{SUFFIX}:" in target


def names_it(name: str, statement: Statement) -> bool:
    """Whether a name stands for a statement.

    It may be a scheme with all its broken variants (`per_block`), one variant (`per_block without its wait`), either of
    them in one direction (`per_block.read`), or one obligation (`per_block.read:T1`).
    """
    exact = name in (statement.scheme, statement.subject, statement.name)
    return exact or statement.scheme.startswith(f"{name} ")


def _unknown(name: str, stated: tuple[Obligation, ...]) -> str:
    statements = [obligation.statement for obligation in stated]
    known = dict.fromkeys(word for each in statements for word in (each.scheme, each.subject, each.name))
    near = get_close_matches(name, known, MOST_NEAR)
    schemes = dict.fromkeys(each.scheme for each in statements if " " not in each.scheme)
    hint = f"near it are: {', '.join(near)}" if near else f"there are {', '.join(schemes)}, or file.py:scheme"
    return f"there is no scheme or obligation {name!r}; {hint}"


def of_file(target: str) -> Iterator[Obligation]:
    """The obligations of a user's scheme: T1, T6 and T7, and T3 where it states a result. All must be PROVED."""
    function = load(target)
    for theorem in OF_A_SCHEME:
        if theorem is not T3 or _states_a_result(function, target):
            yield theorem.of(function, target)


def load(target: str) -> Declared:
    """The scheme function that `file.py:scheme` names, guarded. Raises SchemeError where there is none."""
    shown, name = _split(target)
    if not os.path.isfile(shown):
        raise SchemeError(f"there is no file {shown!r}")
    guard = Guard(shown, os.path.abspath(shown), name)
    module = guard.call("importing it", _imported, guard.file)
    if not hasattr(module, name):
        own = [each for each, value in vars(module).items() if isfunction(value) and value.__module__ == module.__name__]
        asked = f"has no {name!r}" if name else "is a file: say which of its schemes"
        raise SchemeError(f"{shown} {asked}; its functions are: {', '.join(own) or 'none'}")
    function: Any = getattr(module, name)
    if not callable(function):
        raise SchemeError(f"{shown}: {name} is no function but {type(function).__name__} {function!r}")
    return guard.scheme_function(function, guard.call(f"reading the parameters of {name}", _parameters, guard, function))


def line_of(target: str) -> tuple[str, int]:
    """The file of a scheme that was loaded, as the user gave it, and the line where it is defined; 1 where that is not plain."""
    shown, name = _split(target)
    file = os.path.abspath(shown)
    code = getattr(unwrap(getattr(_imported(file), name)), "__code__", None)
    if code is not None and code.co_filename == file:
        return shown, int(code.co_firstlineno)
    bound = re.compile(rf"\s*{re.escape(name)}\s*[:=]")  # made by another function: where it got its name
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return shown, next((number for number, line in enumerate(lines, 1) if bound.match(line)), 1)


def _split(target: str) -> tuple[str, str]:
    """The file and the scheme of `file.py:scheme`; no scheme where there is none."""
    shown, colon, name = target.rpartition(f"{SUFFIX}:")
    return (shown + SUFFIX, name) if colon else (target, "")


def _parameters(guard: Guard, function: Callable[..., Any]) -> Any:
    try:
        return declared(function)
    except ParameterError as reason:
        code = getattr(function, "__code__", None)
        line = f":{code.co_firstlineno}" if code is not None else ""
        raise SchemeError(f"{guard.shown}{line}: {reason}") from reason


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
    """Whether a scheme states a result. Raises SchemeError where it has no operation at all."""
    try:
        model = SchemeModel(function)
        call, step = model.world.integer("call"), model.world.integer("i")
        (stated,) = model.value(call, lambda scheme: (scheme.result is not None,))
        own = [number for number, name in enumerate(model.names) if not stated or name != CALLER]
        some = any(model.instances("any", call, number, step) for number in own)
    except UnsupportedError:
        return False  # each of its obligations says why
    if not some:
        raise SchemeError(f"{target} yields no operation at all: there is nothing to judge")
    return stated
