"""The text of a Python function: its syntax tree, in the tree of its whole file, so that lines are the file's own."""

import ast
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from .liveness import FUNCTIONS
from .refusal import EmitError

READ_AS_THEY_ARE = ("kvstage_model.language.", "kvstage_model.schemes.")
CALLED_AS_THEY_ARE = ("kvstage_model.language.scheme", "kvstage_model.language.operations", "kvstage_model.language.buffers")
"""Modules whose functions make records and edit schemes: they branch on no number, and are called as Python does."""
EDITS = "kvstage_model.language.edits"


def is_read(function: FunctionType) -> bool:
    """Whether a function is read as text: a user's own, or one of the library's loops and partitions."""
    module = function.__module__ or ""
    if module.startswith("kvstage_emit."):
        return False
    if module.startswith("kvstage_model."):
        edit = module == EDITS and function.__name__ != "<lambda>"
        return module.startswith(READ_AS_THEY_ARE) and module not in CALLED_AS_THEY_ARE and not edit
    return function.__globals__.get("__spec__") is None or not _of_python(function.__code__.co_filename)


def _of_python(file: str) -> bool:
    return file.startswith("<") or Path(inspect.__file__).parent in Path(file).parents


@cache
def tree(file: str) -> ast.Module:
    """The syntax tree of a file. Raises EmitError if it can't be read."""
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise EmitError(f"can't read the text of {file}: {error}") from error


def node_of(function: FunctionType) -> FUNCTIONS:
    """The syntax tree of one function. Raises EmitError if it is not found, or two lambdas of a line can't be told apart."""
    code = function.__code__
    kind: Any = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    nodes = (node for node in ast.walk(tree(code.co_filename)) if isinstance(node, kind))
    found = [node for node in nodes if _first_line(node) == code.co_firstlineno]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    fitting = [node for node in found if tuple(each.arg for each in (*node.args.args, *node.args.kwonlyargs)) == names]
    if len(fitting) != 1:
        raise EmitError(f"can't find the text of {function.__name__}, line {code.co_firstlineno}: give it a line of its own")
    node: FUNCTIONS = fitting[0]
    return node


def _first_line(node: FUNCTIONS) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return decorators[0].lineno if decorators else node.lineno


def free_variables(function: FunctionType) -> dict[str, Any]:
    """What a function took along from where it was made."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # not bound yet
        return False
    return True


def doc(function: Callable[..., Any]) -> str:
    """Its docstring, without its indentation."""
    return inspect.getdoc(function) or ""
