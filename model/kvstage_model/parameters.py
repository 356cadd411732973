"""The parameters that a scheme function declares, with their ranges, and small values for them.

    def my_read(runs: Runs, slots: Annotated[int, AtLeast(1)]) -> Scheme: ...

`Runs` stands for every partition of every transfer into runs, `Pieces` for every partition, `PagedRows` for every
transfer, `IntoLarger` and `IntoSmaller` for every one between two pools, an annotated `int` for every number of its
range: one for each call, or one for all calls where a buffer that is kept is as large as it says. `Distinct[...]` promises
that no pool block occurs twice in the table.

All `Runs`, `Pieces` and `PagedRows` of a scheme are transfers of one pool, and all cuts have one longest part: what is proved
of two of them says nothing of pools of two sizes. Between two pools there are `IntoLarger` and `IntoSmaller`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from inspect import signature
from itertools import permutations, product
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from .paired import IntoLarger, IntoSmaller, small_pairs
from .ranges import AtLeast as AtLeast
from .ranges import Flags
from .runs import PagedRows, Pieces, Runs, by_block, by_chunk, by_row
from .scheme import Scheme

T = TypeVar("T")
TRANSFERS: tuple[type, ...] = (Runs, Pieces, PagedRows, IntoLarger, IntoSmaller)
SchemeFunction: TypeAlias = Callable[..., Scheme]


class _NoBlockTwice:
    """The mark that `Distinct` puts on an annotation."""


Distinct: TypeAlias = Annotated[T, _NoBlockTwice]


class ParameterError(TypeError):
    """A scheme function declares something that the prover can't choose values for."""


@dataclass(frozen=True)
class Parameter:
    """One declared parameter: `kind` is Runs, Pieces, PagedRows, IntoLarger, IntoSmaller, Flags or int."""

    name: str
    kind: type
    distinct: bool = False
    least: int = 0


@dataclass(frozen=True)
class Declared:
    """A scheme function made from another one, with parameters stated instead of annotated."""

    function: SchemeFunction
    parameters: tuple[Parameter, ...]

    def __call__(self, **arguments: Any) -> Scheme:
        """The scheme for these arguments."""
        return self.function(**arguments)


def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a scheme function, in order. Raises ParameterError where a range is missing."""
    if isinstance(function, Declared):
        return function.parameters
    hints = get_type_hints(function, include_extras=True)
    return tuple(_parameter(function, name, hints.get(name)) for name in signature(function).parameters)


def allowing_duplicates(function: SchemeFunction) -> Declared:
    """The same scheme, called with tables in which a block may occur twice."""
    return Declared(function, tuple(replace(parameter, distinct=False) for parameter in declared(function)))


def _parameter(function: Callable[..., Any], name: str, hint: Any) -> Parameter:
    kind, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
    kind = get_origin(kind) or kind
    if kind is Flags:
        return Parameter(name, Flags)
    if kind in TRANSFERS:
        return Parameter(name, kind, distinct=_NoBlockTwice in marks)
    least = [mark.least for mark in marks if isinstance(mark, AtLeast)]
    if kind is int and len(least) == 1:
        return Parameter(name, int, least=least[0])
    raise ParameterError(
        f"parameter {name!r} of {getattr(function, '__name__', function)!r} is declared as {hint!r}: "
        "declare Runs, Pieces, PagedRows, IntoLarger, IntoSmaller, Distinct[...] of one of them, Flags, "
        "or Annotated[int, AtLeast(k)]"
    )


def small_values(parameters: tuple[Parameter, ...], most_rows: int) -> Iterator[dict[str, Any]]:
    """Concrete values for all parameters: transfers of up to `most_rows` rows, those of few rows first."""
    for rows in range(most_rows + 1) if moves_rows(parameters) else (0,):
        yield from values_of(parameters, rows)


def moves_rows(parameters: tuple[Parameter, ...]) -> bool:
    """Whether any of them is a transfer, so that a number of rows means something."""
    return any(parameter.kind in TRANSFERS for parameter in parameters)


def values_of(parameters: tuple[Parameter, ...], rows: int) -> Iterator[dict[str, Any]]:
    """Concrete values for all parameters, with transfers of just so many rows, in every small layout."""
    return _chosen(parameters, [list(_values(parameter, rows)) for parameter in parameters])


def plain_values(parameters: tuple[Parameter, ...], rows: int) -> Iterator[dict[str, Any]]:
    """Values with one plain transfer of so many rows, a row a block, and every number from 0 to `rows` that is allowed, and
    the least three: for what takes many steps.
    """
    return _chosen(parameters, [list(_plain(parameter, rows)) for parameter in parameters])


def _chosen(parameters: tuple[Parameter, ...], choices: list[list[Any]]) -> Iterator[dict[str, Any]]:
    for chosen in product(*choices):
        pools = {(value.num_blocks, value.block_size) for value in chosen if isinstance(value, PagedRows | Pieces)}
        longest = {value.longest for value in chosen if isinstance(value, Pieces)}
        if len(pools) <= 1 and len(longest) <= 1:  # all transfers of a call are of one pool, through slots of one size
            yield dict(zip((parameter.name for parameter in parameters), chosen, strict=True))


def _values(parameter: Parameter, rows: int) -> Iterator[Any]:
    if parameter.kind is int:
        yield from range(parameter.least, parameter.least + 3)
    elif parameter.kind is Flags:
        yield from (Flags(of) for of in (_always, _never, _in_odd_steps, _in_even_steps))
    else:
        distinct = parameter.distinct and parameter.kind is not IntoLarger
        yield from (cut for transfer in _transfers(rows, distinct) for cut in _cuts(parameter, transfer))


def _plain(parameter: Parameter, rows: int) -> Iterator[Any]:
    if parameter.kind is int:
        least = range(parameter.least, parameter.least + 3)
        yield from sorted({*least, *range(max(parameter.least, 0), rows + 1)})
    elif parameter.kind is Flags:
        yield from (Flags(of) for of in (_always, _never))
    else:
        yield next(_cuts(parameter, PagedRows(_itself, rows, 1, 0, rows)))


def _cuts(parameter: Parameter, transfer: PagedRows) -> Iterator[Any]:
    if parameter.kind is PagedRows:
        yield transfer
    elif parameter.kind in (IntoLarger, IntoSmaller):
        yield from small_pairs(parameter.kind, transfer, parameter.distinct)
    elif parameter.kind is Pieces:
        yield from (by_chunk(transfer, chunk) for chunk in (1, 2))
    else:
        yield by_row(transfer)
        if transfer.block_size > 1:
            yield by_block(transfer)


def _itself(block: int) -> int:
    return block


def _always(_: int) -> int:
    return 1


def _never(_: int) -> int:
    return 0


def _in_odd_steps(step: int) -> int:
    return step % 2


def _in_even_steps(step: int) -> int:
    return 1 - step % 2


def _transfers(rows: int, distinct: bool) -> Iterator[PagedRows]:
    """Transfers of so many rows: every small block size and history; tables in order, reversed, and with a repetition."""
    for block_size, start in product((1, 2), (0, 1)) if rows else ((2, 1),):  # of no rows, one will do
        blocks = (start + rows - 1) // block_size + 1
        tables = [list(range(blocks)), *[list(order) for order in permutations(range(blocks))][-1:]]
        if not distinct:
            tables.append([0] * blocks)
        for table in {tuple(t): t for t in tables}.values():
            yield PagedRows(table.__getitem__, blocks, block_size, start, start + rows)
