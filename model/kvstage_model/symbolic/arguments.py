"""Symbolic arguments for a scheme function: every transfer, every partition, every number at once.

What is assumed of them is exactly what the concrete ones are checked for: `PagedRows`' requirements, and the contract
of a partition. The pool is one and the same in all calls, whatever is moved; the transfer differs from call to call. So
does a number, unless a buffer that outlives the calls is as large as it says.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import fields
from functools import partial
from itertools import permutations, product
from typing import Any, Generic, TypeVar

import z3
import z3.z3util

from ..language.buffers import Buffer
from ..language.contract import Clause, of_part, of_part_and_row, of_row, of_two_parts, of_two_rows, of_two_runs, of_whole
from ..language.paged_rows import AnyPair, IntoLarger, IntoSmaller, PagedRows, PairedRows
from ..language.parameters import Parameter, SchemeFunction, declared
from ..language.partitions import Piece, Pieces, Run, Runs
from ..language.ranges import ANSWER, Flags
from ..language.scheme import Scheme
from .errors import UnsupportedError
from .world import World
from .z3_terms import Term

Cut = TypeVar("Cut", bound=Pieces[Piece])


def symbolic_arguments(world: World, parameters: tuple[Parameter, ...], call: int, same: Container[str] = ()) -> dict[str, Any]:
    """One symbolic value for every declared parameter, as call number `call` gets it. Numbers in `same` do not differ by call."""
    return {parameter.name: _argument(world, parameter, call, same) for parameter in parameters}


def same_in_all_calls(function: SchemeFunction) -> frozenset[str]:
    """The numbers that size a buffer which is kept from call to call: all but the host's side of the result, the caller's own."""
    parameters = declared(function)
    numbers = {parameter.name for parameter in parameters if parameter.kind is int}
    if not numbers:
        return frozenset()
    world, found = World(), set[str]()
    arguments = symbolic_arguments(world, parameters, world.integer("any call"), numbers)
    symbols = {name: world.term(arguments[name]) for name in numbers}
    for buffer in (buffer for _, kept in _kept_buffers(world, lambda: function(**arguments)) for buffer in kept):
        for size in (buffer.slots, buffer.rows):
            inside = z3.z3util.get_vars(world.term(size))
            found.update(name for name, symbol in symbols.items() if any(symbol.eq(term) for term in inside))
    return frozenset(found)


def _kept_buffers(world: World, build: Callable[[], Scheme]) -> list[tuple[Term, tuple[Buffer, ...]]]:
    """What is kept from call to call, on each path of building a scheme: all buffers but the host's side of the result."""

    def look() -> tuple[Buffer, ...]:
        scheme = build()
        return tuple(b for b in scheme.buffers if scheme.result is None or b.name != scheme.result.host.name)

    return [world.follow(path, look) for path in world.paths(look)]


def check_layouts(function: SchemeFunction, same: Container[str]) -> None:
    """Raises UnsupportedError if the slots of a kept buffer lie elsewhere in another call: it is the same memory.

    A slot lies at its number times the rows of a slot, so those must be as many in all calls, or there is one slot.
    """
    world, parameters = World(), declared(function)
    calls = world.integer("a call"), world.integer("another call")
    layouts = [_kept_buffers(world, partial(function, **symbolic_arguments(world, parameters, call, same))) for call in calls]
    for (one, kept), (other, later) in product(*layouts):
        for buffer, again in product(kept, later):
            if buffer.name != again.name or (_is_one(buffer.slots) and _is_one(again.slots)):
                continue
            differ = z3.Not(world.term(buffer.rows) == world.term(again.rows))
            if not world.impossible(one, other, differ):
                raise UnsupportedError(
                    f"a slot of buffer {buffer.name!r} has other rows in one call than in another, by a branch or by its rows: "
                    "its slots then overlap those of the call before; size it by numbers alone, or give it one slot"
                )


def _is_one(number: object) -> bool:
    return isinstance(number, int) and number == 1


def _argument(world: World, parameter: Parameter, call: int, same: Container[str]) -> Any:
    if parameter.kind is PagedRows:
        return any_rows(world, parameter.name, call, parameter.distinct)
    if issubclass(parameter.kind, PairedRows):
        return any_pair(world, parameter.name, call, parameter.kind, parameter.distinct)
    if parameter.kind is Pieces:
        return AnyPartition(world, parameter.name, call, Pieces, Piece, parameter.distinct).parts
    if parameter.kind is Runs:
        return AnyPartition(world, parameter.name, call, Runs, Run, parameter.distinct).parts
    if parameter.kind is Flags:
        return _any_flags(world, parameter.name, call)
    name = f"parameter {parameter.name}"  # never the name of a step or a call, which are other numbers
    number = world.integer(name) if parameter.name in same else world.function(name, 1)(call)
    world.at_least(number, parameter.least)
    return number


def _any_flags(world: World, name: str, call: int) -> Flags:
    answers = world.function(f"{name}{ANSWER}", 2)

    def of(step: int) -> int:
        answer = answers(call, step)
        world.assume(answer >= 0, answer <= 1)
        return answer

    return Flags(of)


def _pool(world: World) -> tuple[int, int]:
    num_blocks, block_size = world.integer("pool.num_blocks"), world.integer("pool.block_size")
    world.assume(num_blocks >= 0)
    world.at_least(block_size, 1)
    return num_blocks, block_size


def any_rows(world: World, name: str, call: int, distinct: bool) -> PagedRows:
    """Any rows [start, stop) of any sequence, in a pool of any size."""
    num_blocks, block_size = _pool(world)
    start, stop = (world.function(f"{name}.{end}", 1)(call) for end in ("start", "stop"))
    world.assume(start >= 0, start <= stop)

    def touches(k: int) -> bool:
        return rows.touches(k)

    table = _any_table(world, f"{name}.table", call, num_blocks, touches, distinct)
    rows = PagedRows(table, num_blocks, block_size, start, stop)
    return rows


def any_pair(world: World, name: str, call: int, kind: type[AnyPair], distinct: bool) -> AnyPair:
    """Any rows of any sequence in two pools of any sizes, whose blocks differ by any factor."""
    small = any_rows(world, name, call, distinct and kind is IntoSmaller)
    num_blocks, factor = world.integer("larger pool.num_blocks"), world.integer("larger pool.factor")
    world.assume(num_blocks >= 0)
    world.at_least(factor, 1)

    def touches(k: int) -> bool:
        return pair.touches(k)

    table = _any_table(world, f"{name}.larger table", call, num_blocks, touches, distinct and kind is IntoLarger)
    pair = kind(small, table, num_blocks, factor)
    return pair


def _any_table(
    world: World, name: str, call: int, num_blocks: int, touches: Callable[[int], bool], distinct: bool
) -> Callable[[int], int]:
    """Any table whose touched blocks are in the pool; if they are distinct, no two of them are one."""
    blocks = world.function(name, 2)
    seen: list[int] = []

    def table(k: int) -> int:
        block = blocks(call, k)
        if _seen(world, k, seen):
            return block
        touched = touches(k)
        world.assume_implied(touched, (block >= 0) & (block < num_blocks))
        for other in seen if distinct else ():
            world.assume_implied(touched & touches(other) & (block == blocks(call, other)), k == other)
        seen.append(k)
        return block

    return table


class AnyPartition(Generic[Cut]):
    """Any partition of any transfer: unknown functions, of which the contract is assumed wherever they are asked.

    Whenever it is asked for a part or a row that it was not asked for before, the clauses are assumed of that one, and
    of every pair with those it was asked for.
    """

    def __init__(self, world: World, name: str, call: int, make: type[Cut], part: type[Piece], distinct: bool) -> None:
        self._world, self._distinct = world, distinct
        num_blocks, block_size = _pool(world)
        of_part = [world.function(f"{name}.{field.name}", 2) for field in fields(part)]
        holder, block, row = (world.function(f"{name}.{field}", 2) for field in ("holder", "block", "row"))
        number, length = (world.function(f"{name}.{field}", 1)(call) for field in ("number", "length"))
        pool = (length, num_blocks, block_size)
        longest = world.integer("longest")  # one size of staging slots for all that is moved

        def bare_part(i: int) -> Piece:
            return part(*(of(call, i) for of in of_part))

        def bare_address(position: int) -> tuple[int, int]:
            return block(call, position), row(call, position)

        def bare_holder(position: int) -> int:
            return holder(call, position)

        def asked_part(i: int) -> Piece:
            self._ask_part(i)
            return bare_part(i)

        def asked_holder(position: int) -> int:
            self._ask_row(position)
            return bare_holder(position)

        def asked_address(position: int) -> tuple[int, int]:
            self._ask_row(position)
            return bare_address(position)

        build: Any = make
        self._bare: Cut = build(number, bare_part, longest, bare_holder, *pool, bare_address)
        self.parts: Cut = build(number, asked_part, longest, asked_holder, *pool, asked_address)
        self._parts: list[int] = []
        self._rows: list[int] = []
        self._assume(of_whole(self._bare))

    def _ask_part(self, i: int) -> None:
        if _seen(self._world, i, self._parts):
            return
        self._assume(of_part(self._bare, i))
        for other in self._parts:
            for a, b in permutations((i, other)):
                self._assume(of_two_parts(self._bare, a, b))
            if self._distinct and isinstance(self._bare, Runs):
                self._assume(of_two_runs(self._bare, i, other))
        for row in self._rows:
            self._assume(of_part_and_row(self._bare, i, row))
        self._parts.append(i)

    def _ask_row(self, position: int) -> None:
        if _seen(self._world, position, self._rows):
            return
        self._assume(of_row(self._bare, position))
        for other in self._rows if self._distinct else ():
            self._assume(of_two_rows(self._bare, position, other))
        for part in self._parts:
            self._assume(of_part_and_row(self._bare, part, position))
        self._rows.append(position)
        self._ask_part(self._bare.holder(position))

    def _assume(self, clauses: Iterator[Clause]) -> None:
        for clause in clauses:
            self._world.assume_implied(clause.premise, clause.conclusion)


def _seen(world: World, value: int, values: list[int]) -> bool:
    return any(world.term(value).eq(world.term(other)) for other in values)
