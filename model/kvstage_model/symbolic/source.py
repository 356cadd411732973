"""The source text of a function that runs: found by its code object, and compared with it.

What is read must be what runs: the file's text is compiled again, and a function counts only if its code comes out the same.
"""

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSourceError(Exception):
    """There is no text of a function, or it is not the text of what runs."""


def definition_of(code: CodeType) -> Definition:
    """The definition of a function in its file. Raises NoSourceError."""
    linecache.checkcache(code.co_filename)
    tree, compiled = _file(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    if code not in compiled and not _is_rewritten(code):
        raise NoSourceError("has no source text that is the text of what runs: write it in a file, as text")
    named = [node for node in _definitions(tree) if _name(node) == code.co_name and _first_line(node) == code.co_firstlineno]
    if len(named) > 1:  # several lambdas in one line
        named = [node for node in named if isinstance(node, ast.Lambda) and _extent(code) == _place(node.body)]
    if len(named) != 1:
        raise NoSourceError("stands in one line with another that looks the same: give it a line of its own")
    return named[0]


def place_of(code: CodeType, line: int | None = None) -> str:
    """File and line, the file as people would name it from where they are."""
    path = Path(code.co_filename)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}:{code.co_firstlineno if line is None else line}"


@lru_cache(maxsize=256)
def _file(name: str, text: str) -> tuple[ast.Module, frozenset[CodeType]]:
    if not text:
        raise NoSourceError("has no source text: write it in a file")
    try:
        tree = ast.parse(text)
        return tree, frozenset(_codes(compile(text, name, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError) as error:
        raise NoSourceError(f"has a text that is no Python: {error}") from error


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _is_rewritten(code: CodeType) -> bool:
    """Whether pytest has rewritten an assertion in a function, or in one inside it: it leaves all else as it is."""
    return any(name.startswith("@py_assert") for inner in _codes(code) for name in inner.co_varnames)


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    return (node for node in ast.walk(tree) if isinstance(node, Definition))


def _name(node: Definition) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: Definition) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(each.lineno for each in decorators)])


def _place(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def _extent(code: CodeType) -> tuple[int, int, int, int] | None:
    """From where to where the text of a lambda's instructions reaches."""
    known = [each for each in code.co_positions() if None not in each and each[2:] != (0, 0)]
    begins = [(line or 0, column or 0) for line, _, column, _ in known]
    ends = [(line or 0, column or 0) for _, line, _, column in known]
    return (*min(begins), *max(ends)) if known else None
