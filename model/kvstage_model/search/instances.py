"""Small concrete instances of a scheme, smallest first: values for its parameters, called once or twice."""

from collections.abc import Callable, Iterator
from itertools import chain, permutations, product
from typing import Any, TypeAlias

from ..language.paged_rows import AnyPair, IntoLarger, IntoSmaller, PagedRows
from ..language.parameters import TRANSFERS, Parameter, SchemeFunction, declared
from ..language.partitions import Pieces, by_block, by_chunk, by_row
from ..language.ranges import Flags
from ..language.scheme import Scheme
from .wording import _in_words


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


def small_pairs(kind: type[AnyPair], rows: PagedRows, distinct: bool) -> Iterator[AnyPair]:
    """The same rows in blocks as large, and twice as large: with tables in order, reversed, and with a repetition."""
    blocks = (rows.stop - 1) // rows.block_size + 1
    for factor in (1, 2):
        number = (blocks + factor - 1) // factor
        tables = [tuple(range(number)), tuple(reversed(range(number)))]
        if not (distinct and issubclass(kind, IntoLarger)):
            tables.append((0,) * number)
        for table in dict.fromkeys(tables):
            yield kind(rows, table.__getitem__, number, factor)


MOST_ROWS = 3
"""Rows of the largest transfer that is tried in every small layout."""
MOST_CALLS = 2
"""Calls of the longest sequence that is tried."""
LONGEST = 8
"""Rows of the longest transfer that is tried at all, a row a block: a ring is used again only if it has fewer slots."""
MOST_ANSWERS = 10
"""Answers of queries, over all steps and flags, of which every sequence is tried."""
Values: TypeAlias = dict[str, Any]


def instances(function: SchemeFunction) -> Iterator[tuple[tuple[Scheme, ...], str]]:
    """Sequences of calls with concrete arguments, each once: every small layout, few rows first, and then longer transfers.

    Of a scheme without a transfer: every small choice of numbers, and then larger ones, one call before two.
    """
    parameters = declared(function)
    moving = moves_rows(parameters)
    seen = None if moving else set[str]()
    small = [(rows * calls, calls) for rows in range(1, MOST_ROWS + 1) for calls in range(1, MOST_CALLS + 1)]
    for total, calls in [(0, 1), *sorted(small)] if moving else [(calls, calls) for calls in range(1, MOST_CALLS + 1)]:
        yield from _called(function, values_of(parameters, total // calls), calls, seen)
    lengths = range(MOST_ROWS + 1, LONGEST + 1)
    longer = [(length, calls) for length in lengths for calls in range(1, MOST_CALLS + 1)]
    for length, calls in longer if moving else sorted(longer, key=lambda each: each[1]):  # pairs of numbers are many more
        yield from _called(function, plain_values(parameters, length), calls, seen)
    flags = sum(parameter.kind is Flags for parameter in parameters)
    for steps in range(1, MOST_ANSWERS // flags + 1) if flags else ():
        yield from _called(function, with_flags(parameters, steps), 1, None)


def with_flags(parameters: tuple[Parameter, ...], steps: int) -> Iterator[Values]:
    """Every sequence of answers in so many steps, with plain values of as many rows; after them the answer is no."""
    flags = [parameter.name for parameter in parameters if parameter.kind is Flags]
    others = tuple(parameter for parameter in parameters if parameter.kind is not Flags)
    for values in plain_values(others, steps) if flags else ():
        if all(value <= steps for value in values.values() if type(value) is int):
            for answers in product(product((0, 1), repeat=steps), repeat=len(flags)):
                chosen = {name: Flags(_answered(answer)) for name, answer in zip(flags, answers, strict=True)}
                yield {each.name: chosen.get(each.name, values.get(each.name)) for each in parameters}


def _answered(answers: tuple[int, ...]) -> Callable[[int], int]:
    return lambda step: answers[step] if step < len(answers) else 0


def _called(
    function: SchemeFunction, all_values: Iterator[Values], calls: int, seen: set[str] | None
) -> Iterator[tuple[tuple[Scheme, ...], str]]:
    every = list(all_values)
    alike = _with_other_numbers(function, every) if calls > 1 else [[] for _ in every]
    for values, others in zip(every, alike, strict=True):
        for other in chain([values], (each for each in others if each is not values)):
            numbers = ", ".join(f"{name} = {_in_words(value, other[name])}" for name, value in values.items())
            words = f"{numbers}, {calls} call{'s' if calls > 1 else ''}"
            if seen is not None:  # larger numbers come with all that are less again
                if words in seen:
                    continue
                seen.add(words)
            yield tuple(function(**each) for each in (values, *[other] * (calls - 1))), words


def _with_other_numbers(function: SchemeFunction, every: list[Values]) -> list[list[Values]]:
    """What a later call may have, for each, itself included: the same transfers, and numbers that leave each buffer as large
    as it is. Those that have the same in common share one list.
    """
    if not any(type(value) is int for values in every[:1] for value in values.values()):
        return [[] for _ in every]
    alike: dict[object, list[Values]] = {}
    keys = []
    for values in every:
        moved = tuple(id(value) for value in values.values() if type(value) is not int)
        keys.append((moved, tuple(_kept(function(**values)).items())))
        alike.setdefault(keys[-1], []).append(values)
    return [alike[key] for key in keys]


def _kept(scheme: Scheme) -> dict[str, tuple[int, int]]:
    """The sizes of the buffers that are kept from call to call: all but the host's side of the result."""
    own = None if scheme.result is None else scheme.result.host.name
    return {buffer.name: (buffer.slots, buffer.rows) for buffer in scheme.buffers if buffer.name != own}
