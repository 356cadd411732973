"""The headers: one for a scheme, with the verdicts of its proof on top, and those that all schemes stand on."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any

from kvstage_model.language.paged_rows import IntoLarger, PagedRows, PairedRows
from kvstage_model.language.parameters import Declared, Parameter, SchemeFunction
from kvstage_model.schemes.registry import ENTRIES, SchemeEntry

from ..reading.lines import Lines, text, useful
from ..reading.number import CHOICE, Number, bound
from ..reading.source import doc
from .arguments import Arguments
from .function import Function, written
from .operations import Writer

INCLUDE = Path(__file__).parents[1] / "include" / "kvstage" / "staging"
STAGING = "staging.hpp"
SHARED = ("backend.hpp", "deferred_backend.hpp", "queue_backend.hpp", "cuda_backend.hpp")
"""The headers beside it that are written by hand."""
PARTITIONS = ("by_row", "by_block", "by_chunk", "merged")
"""The partitions, which are proved by themselves: functions and catalogue call them the same."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A scheme as C++, before it is judged: `judged` are the names of what it may be written by, once all are PROVED."""

    name: str
    functions: tuple[Function, ...]
    judged: tuple[str, ...]

    def header(self, verdicts: Sequence[str]) -> str:
        """The header with these verdicts on top, a line each."""
        helpers = dict(item for function in self.functions for item in function.helpers.items())
        parts = [*helpers.values(), *(function.text for function in self.functions)]
        top = [
            f"{self.name}, written by kvstage {_version()} (kvstage emit). Don't edit it: change the scheme, and emit it anew.",
            "",
            "Judged when it was written:",
            *(f"  {line}" for line in verdicts),
        ]
        return (
            "".join(f"// {line}".rstrip() + "\n" for line in top)
            + f'#pragma once\n\n#include "backend.hpp"\n\nnamespace kvstage {{\n\n{chr(10).join(parts)}\n}}  // namespace kvstage\n'
        )


def drafts() -> tuple[Draft, ...]:
    """All schemes of the library."""
    return tuple(map(of_entry, ENTRIES))


def of_entry(entry: SchemeEntry) -> Draft:
    """A scheme of the library, in both directions. The library's own binding is read like any other function."""
    pair = entry.proved if entry.bind is None else entry.offered
    bound_by = "" if entry.bind is None else f"{doc(entry.bind)}\n"
    sides = (("read", entry.loops.read, pair.read), ("write", entry.loops.write, pair.write))
    functions = tuple(written(each, f"{entry.name}_{side}", f"{bound_by}{doc(loop.scheme)}") for side, loop, each in sides)
    return Draft(entry.name, functions, (*_partitions(functions), entry.name))


def of_function(function: SchemeFunction, target: str) -> Draft:
    """A scheme of a user's own."""
    name = target.rpartition(":")[2]
    told = function.function if isinstance(function, Declared) else function
    made = written(function, name, doc(told) or name)
    return Draft(name, (made,), (*_partitions((made,)), target))


def _partitions(functions: Sequence[Function]) -> tuple[str, ...]:
    read = {function.__name__ for each in functions for function in each.read.values() if _is_ours(function)}
    return tuple(name for name in PARTITIONS if name in read)


def _is_ours(function: FunctionType) -> bool:
    return function.__module__.startswith("kvstage_model.")


def staging() -> str:
    """staging.hpp: its address formulas are read from the one home that they have."""
    made = (INCLUDE.parents[2] / "writing" / "staging.hpp.in").read_text(encoding="utf-8")
    for kind, parameter in ((PagedRows, Parameter("rows", PagedRows)), (PairedRows, Parameter("rows", IntoLarger))):
        writer = Writer(Lines(["position"]))
        rows: Any = Arguments(writer, (parameter,)).values["rows"]
        position = Number(writer.knowledge, "position", twin=writer.knowledge.world.integer("position"))
        writer.knowledge.assume(position.twin >= 0)
        address: Any = kind.address
        slot, start = writer.function(address)(rows, position)
        returned = f"return {{{bound(slot, CHOICE)}, {bound(start, CHOICE)}}};"
        lines = text(useful(writer.lines.written, returned), 2).replace("rows.", "")
        made = made.replace(f"@{kind.__name__}.address@", f"{lines}        {returned.replace('rows.', '')}\n")
    return made


def support() -> dict[str, str]:
    """The headers that those of schemes stand on, and the backends, by their names."""
    return {STAGING: staging()} | {name: (INCLUDE / name).read_text(encoding="utf-8") for name in SHARED}


def _version() -> str:
    try:
        return version("kvstage")
    except PackageNotFoundError:
        return "(not installed)"


def verdict_lines(names: Sequence[tuple[str, str, str]]) -> list[str]:
    """Verdict, name and title of each obligation, in columns."""
    width = max((len(name) for _, name, _ in names), default=0)
    return [f"{verdict:<8} {name:<{width}}  {title}".rstrip() for verdict, name, title in names]
