"""Symbolic arguments for a scheme function: every transfer, every partition, every number at once.

What is assumed of them is exactly what the concrete ones are checked for: `PagedRows`' requirements, and the contract
of `Runs`. The pool is one and the same in all calls; the transfer differs from call to call.
"""

from collections.abc import Callable
from typing import Any

from .parameters import Parameter
from .runs import PagedRows, Run, Runs, contract, distinct_runs
from .world import World

Applied = Callable[..., int]


def symbolic_arguments(world: World, parameters: tuple[Parameter, ...], call: int) -> dict[str, Any]:
    """One symbolic value for every declared parameter, as call number `call` gets it."""
    return {parameter.name: _argument(world, parameter, call) for parameter in parameters}


def _argument(world: World, parameter: Parameter, call: int) -> Any:
    if parameter.kind is PagedRows:
        return any_rows(world, parameter.name, call, parameter.distinct)
    if parameter.kind is Runs:
        return any_runs(world, parameter.name, call, parameter.distinct)
    number = world.integer(f"parameter {parameter.name}")  # never the name of a step or a call, which are other numbers
    world.assume(number >= parameter.least)
    return number


def _pool(world: World, name: str) -> tuple[int, int]:
    num_blocks, block_size = world.integer(f"{name}.num_blocks"), world.integer(f"{name}.block_size")
    world.assume(num_blocks >= 0, block_size >= 1)
    return num_blocks, block_size


def any_rows(world: World, name: str, call: int, distinct: bool) -> PagedRows:
    """Any rows [start, stop) of any sequence, in a pool of any size."""
    num_blocks, block_size = _pool(world, name)
    start, stop = (world.function(f"{name}.{end}", 1)(call) for end in ("start", "stop"))
    world.assume(start >= 0, start <= stop)
    blocks = world.function(f"{name}.table", 2)
    seen: list[int] = []

    def table(k: int) -> int:
        block = blocks(call, k)
        touched = rows.touches(k)
        world.assume_implied(touched, (block >= 0) & (block < num_blocks))
        for other in seen if distinct else ():
            world.assume_implied(touched & rows.touches(other) & (block == blocks(call, other)), k == other)
        seen.append(k)
        return block

    rows = PagedRows(table, num_blocks, block_size, start, stop)
    return rows


def any_runs(world: World, name: str, call: int, distinct: bool) -> Runs:
    """Any partition of any transfer: unknown functions, of which the contract is assumed wherever they are asked."""
    num_blocks, block_size = _pool(world, name)
    part = {
        field: world.function(f"{name}.{field}", 2) for field in ("slot", "start", "count", "position", "holder", "block", "row")
    }
    number, length = (world.function(f"{name}.{field}", 1)(call) for field in ("number", "length"))
    longest = world.integer(f"{name}.longest")
    steps: list[int] = [world.index(world.term(0))]
    positions: list[int] = [world.index(world.term(0))]

    def run(i: int) -> Run:
        return Run(*(part[field](call, i) for field in ("slot", "start", "count", "position")))

    def address(position: int) -> tuple[int, int]:
        return part["block"](call, position), part["row"](call, position)

    bare = Runs(number, run, longest, lambda p: part["holder"](call, p), length, num_blocks, block_size, address)

    def agree(i: int, j: int, position: int) -> None:
        clauses = [*contract(bare, i, j, position), *([distinct_runs(bare, i, j)] if distinct else [])]
        for clause in clauses:
            world.assume_implied(clause.premise, clause.conclusion)

    def asked_run(i: int) -> Run:
        if not _seen(world, i, steps):
            steps.append(i)
            for j in steps:
                for position in positions:
                    agree(i, j, position)
                    agree(j, i, position)
        return run(i)

    def asked_position(position: int) -> None:
        if _seen(world, position, positions):
            return
        positions.append(position)
        asked_run(bare.holder(position))
        for i in steps:
            agree(i, i, position)

    def asked_holder(position: int) -> int:
        asked_position(position)
        return bare.holder(position)

    def asked_address(position: int) -> tuple[int, int]:
        asked_position(position)
        return address(position)

    return Runs(number, asked_run, longest, asked_holder, length, num_blocks, block_size, asked_address)


def _seen(world: World, value: int, values: list[int]) -> bool:
    return any(world.term(value).eq(world.term(other)) for other in values)
