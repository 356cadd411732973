"""The parameters that a scheme function declares, with their ranges, and small values for them.

    def my_read(runs: Runs, slots: Annotated[int, AtLeast(1)]) -> Scheme: ...

`Runs` stands for every partition of every transfer into runs, `Pieces` for every partition, `PagedRows` for every
transfer, `IntoLarger` and `IntoSmaller` for every one between two pools, an annotated `int` for every number of its
range: one for each call, or one for all calls if a buffer that is kept is as large as it says. `Distinct[...]` promises
that no pool block occurs twice in the table.

All `Runs`, `Pieces` and `PagedRows` of a scheme are transfers of one pool, and all cuts have one longest part: what is proved
of two of them says nothing of pools of two sizes. Between two pools there are `IntoLarger` and `IntoSmaller`.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import Signature, signature
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from .paged_rows import IntoLarger, IntoSmaller, PagedRows
from .partitions import Pieces, Runs
from .ranges import AtLeast, Flags
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

    @property
    def __signature__(self) -> Signature:
        """What `inspect.signature` says of it, as of a function that is annotated."""
        return Signature([inspect.Parameter(each.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in self.parameters])

    def __call__(self, *values: Any, **arguments: Any) -> Scheme:
        """The scheme for these arguments."""
        return self.function(*values, **arguments)


def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a scheme function, in order. Raises ParameterError if a range is missing."""
    if isinstance(function, Declared):
        return function.parameters
    hints = get_type_hints(function, include_extras=True)
    parameters = tuple(_parameter(function, name, hints.get(name)) for name in signature(function).parameters)
    wrong = default_out_of_range(function)
    if wrong is not None:
        raise ParameterError(wrong)
    return parameters


def least_values(function: Callable[..., Any]) -> dict[str, int]:
    """The least value of each number that a scheme function declares with its range; of one that declares none, nothing."""
    return {each.name: each.least for each in _stated(function) if each.kind is int}


def demands_distinct(function: Callable[..., Any]) -> bool:
    """Whether a scheme function is only for tables in which no block occurs twice."""
    return any(each.distinct for each in _stated(function))


def default_out_of_range(function: Callable[..., Any]) -> str | None:
    """The first default of a number that lies outside its declared range, in words: no proof is about a call with it."""
    least = least_values(function)
    for name, parameter in signature(function).parameters.items():
        default = parameter.default
        if name in least and default is not parameter.empty and not (type(default) is int and default >= least[name]):
            return (
                f"parameter {name!r} of {getattr(function, '__name__', 'the scheme')} has the default {default!r}, outside its "
                f"declared range, an int of at least {least[name]}: give it a default that the proof is about"
            )
    return None


def _stated(function: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters that are declared as the prover reads them; others are passed over."""
    if isinstance(function, Declared):
        yield from function.parameters
        return
    if isinstance(function, partial):
        yield from (each for each in _stated(function.func) if each.name not in function.keywords or each.kind is int)
        return
    try:
        hints = get_type_hints(function, include_extras=True)
    except (TypeError, NameError):  # an object that is called, or a name that nothing defines
        return
    for name in signature(function).parameters:
        with suppress(ParameterError):
            yield _parameter(function, name, hints.get(name))


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
