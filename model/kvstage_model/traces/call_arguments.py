"""The arguments of a call, written beside its trace: with them, its reader can build the scheme that was called.

A `PagedRows` is written with its block table, `Runs` and `Pieces` with the counts of their parts and the place of each
row. Arguments that break what the scheme's parameters promise are refused: a table with a block twice, a part longer
than a slot, a run across two blocks.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..language.paged_rows import IntoLarger, IntoSmaller, PagedRows, PairedRows
from ..language.parameters import Parameter, SchemeFunction, declared
from ..language.partitions import Piece, Pieces, Run, Runs
from ..language.ranges import Flags
from ..language.scheme import Scheme
from .errors import TraceFormatError, TraceTooLargeError
from .json_values import entries, fields, memory, number, pair

MOST = 2_000
"""Steps, and rows, of the largest scheme that is built from arguments: a few digits in a file could ask for any number."""


def arguments_as_json(values: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The arguments of a scheme of so many steps as JSON values, by parameter."""
    return {key: _written(value, steps) for key, value in values.items()}


def _written(value: Any, steps: int) -> Any:
    if isinstance(value, PagedRows):
        blocks = (value.stop - 1) // value.block_size + 1 if value.start < value.stop else 0
        table = [value.table(block) for block in range(blocks)]
        sizes = {"num_blocks": value.num_blocks, "block_size": value.block_size}
        return {"table": table, **sizes, "start": value.start, "stop": value.stop}
    if isinstance(value, PairedRows):
        blocks = (value.small.stop - 1) // value.block_size + 1 if value.small.start < value.small.stop else 0
        memories = {"small_memory": value.small_memory.value, "memory": value.memory.value}
        table = [value.table(block) for block in range(blocks)]
        return {
            "small": _written(value.small, steps),
            "table": table,
            "num_blocks": value.num_blocks,
            "factor": value.factor,
        } | memories
    if isinstance(value, Pieces):
        return {
            "counts": [value.part(i).count for i in range(value.number)],
            "places": [list(value.address(position)) for position in range(value.length)],
            "longest": value.longest,
            "num_blocks": value.num_blocks,
            "block_size": value.block_size,
        }
    return [value(step) for step in range(steps)] if isinstance(value, Flags) else value


def called(function: SchemeFunction, arguments: Mapping[str, Any], where: str) -> Scheme:
    """The scheme that a call ran. `where` is the place of its arguments. Raises TraceFormatError, TraceTooLargeError."""
    parameters = declared(function)
    given = fields(arguments, where, tuple(parameter.name for parameter in parameters))
    values = {each.name: _read(each, given[each.name], f"{where}.{each.name}") for each in parameters}
    scheme = function(**values)
    size = max(phase.steps for phase in scheme.phases)
    if size > MOST:
        raise TraceTooLargeError(f"{where} make a scheme of {size} steps or rows: traces are checked up to {MOST}")
    return scheme


def _read(parameter: Parameter, value: Any, where: str) -> Any:
    if parameter.kind is PagedRows:
        return _paged_rows(value, where, parameter.distinct)
    if parameter.kind is IntoLarger or parameter.kind is IntoSmaller:
        return _paired_rows(value, where, parameter)
    if parameter.kind is Runs or parameter.kind is Pieces:
        return _parts(value, where, parameter)
    if parameter.kind is Flags:
        return Flags(_total([number(entry, place, most=1) for place, entry in entries(value, where)], 0))
    return number(value, where, parameter.least)


def _paged_rows(value: Any, where: str, distinct: bool) -> PagedRows:
    given = fields(value, where, ("table", "num_blocks", "block_size", "start", "stop"))
    num_blocks, start = (number(given[key], f"{where}.{key}") for key in ("num_blocks", "start"))
    size, stop = number(given["block_size"], f"{where}.block_size", 1), number(given["stop"], f"{where}.stop", start)
    table = [number(entry, place, most=num_blocks - 1) for place, entry in entries(given["table"], f"{where}.table")]
    touched = table[start // size : (stop - 1) // size + 1] if start < stop else []
    if start < stop and stop > len(table) * size:
        raise TraceFormatError(f"{where}.table has {len(table)} blocks of {size} rows, and stop is {stop}")
    if distinct and len(set(touched)) < len(touched):
        raise TraceFormatError(f"{where}.table has a block twice, which a write must not have")
    return PagedRows(_total(table, 0), num_blocks, size, start, stop)


def _paired_rows(value: Any, where: str, parameter: Parameter) -> PairedRows:
    given = fields(value, where, ("small", "table", "num_blocks", "factor", "small_memory", "memory"))
    into_larger = parameter.kind is IntoLarger
    small = _paged_rows(given["small"], f"{where}.small", parameter.distinct and not into_larger)
    num_blocks, factor = number(given["num_blocks"], f"{where}.num_blocks"), number(given["factor"], f"{where}.factor", 1)
    larger = {"block_size": small.block_size * factor, "start": small.start, "stop": small.stop, "num_blocks": num_blocks}
    table = _paged_rows({"table": given["table"], **larger}, where, parameter.distinct and into_larger).table
    memories = (memory(given[key], f"{where}.{key}") for key in ("small_memory", "memory"))
    return (IntoLarger if into_larger else IntoSmaller)(small, table, num_blocks, factor, *memories)


def _parts(value: Any, where: str, parameter: Parameter) -> Pieces[Piece]:
    given = fields(value, where, ("counts", "places", "longest", "num_blocks", "block_size"))
    num_blocks, size, longest = (number(given[key], f"{where}.{key}") for key in ("num_blocks", "block_size", "longest"))
    counts = [number(entry, place, 1, longest) for place, entry in entries(given["counts"], f"{where}.counts")]
    listed = ((place, *pair(entry, place)) for place, entry in entries(given["places"], f"{where}.places"))
    places = [(number(slot, at, most=num_blocks - 1), number(row, at, most=size - 1)) for at, slot, row in listed]
    ends = list(accumulate(counts))
    if (ends or [0])[-1] != len(places):
        raise TraceFormatError(f"{where} has {len(places)} places for {sum(counts)} rows: each row has one")
    if parameter.distinct and len(set(places)) < len(places):
        raise TraceFormatError(f"{where}.places has a place twice, which a write must not have")
    pieces = [Piece(end - count, count) for end, count in zip(ends, counts, strict=True)]
    address = places.__getitem__

    def holder(position: int) -> int:
        return bisect_right(ends, position)

    if parameter.kind is Pieces:
        return Pieces(len(pieces), pieces.__getitem__, longest, holder, len(places), num_blocks, size, address)
    runs = [Run(piece.position, piece.count, *places[piece.position]) for piece in pieces]
    for run in runs:
        if places[run.position : run.position + run.count] != [(run.slot, run.start + row) for row in range(run.count)]:
            raise TraceFormatError(f"{where}: the {run.count} rows from row {run.position} on do not lie side by side in one block")
    return Runs(len(runs), runs.__getitem__, longest, holder, len(places), num_blocks, size, address)


def _total(values: Sequence[int], otherwise: int) -> Callable[[int], int]:
    return lambda k: values[k] if 0 <= k < len(values) else otherwise
