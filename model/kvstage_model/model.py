"""A scheme in the solver: the operations of any call, phase and step, with their moments and when they exist."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import z3

from .arguments import symbolic_arguments
from .axioms import Moment
from .merge import identical, merge, shape, spine
from .operations import Operation, Rows, reads, writes
from .parameters import SchemeFunction, declared
from .scheme import Phase, Scheme
from .symbolic import Index, Term, UnsupportedError
from .world import IMPURE, Path, World

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Site:
    """Where an operation stands in the text: its phase, and its place in a step. Part of its identity."""

    phase: int
    position: int


@dataclass(frozen=True, eq=False)
class Instance:
    """One operation of one symbolic call and step. Its identity is its site, call and step, never its label."""

    name: str
    site: Site
    call: Term
    step: Term
    operation: Operation
    exists: Term

    def moment(self, moment: Moment) -> Term:
        """When it was issued, begins or ends: an integer, of which only the order counts."""
        return z3.Int(f"{self.name}.{moment.value}", self.exists.ctx)

    @property
    def begin(self) -> Term:
        """When it begins."""
        return self.moment(Moment.BEGIN)

    @property
    def end(self) -> Term:
        """When it has ended."""
        return self.moment(Moment.END)


@dataclass(frozen=True, eq=False)
class PhaseOfAny:
    """A phase of the scheme, and the paths that any step of it may take."""

    name: str
    paths: tuple[Path, ...]
    single: bool


class SchemeModel:
    """A scheme function with symbolic arguments. All its instances live in one world."""

    def __init__(self, function: SchemeFunction) -> None:
        self.world = World()
        self.function = function
        self.parameters = declared(function)
        self._arguments: dict[int, dict[str, Any]] = {}
        self._calls: list[Term] = []  # keeps the terms alive whose ids are keys
        call, step = self.world.integer("any call"), self.world.integer("any step")
        built = self._build_paths(call)
        names = {tuple(phase.name for phase in self.world.follow(path, lambda: self._scheme(call))[1].phases) for path in built}
        if len(names) != 1:
            raise UnsupportedError(f"the phases of a scheme depend on its arguments: {sorted(names)}")
        (self.names,) = names
        self.phases = tuple(self._explore(call, step, number) for number in range(len(self.names)))

    def _scheme(self, call: int) -> Scheme:
        term = self.world.term(call)
        if term.get_id() not in self._arguments:
            self._calls.append(term)
            self._arguments[term.get_id()] = symbolic_arguments(self.world, self.parameters, call)
        return self.function(**self._arguments[term.get_id()])

    def _build_paths(self, call: int) -> list[Path]:
        return self.world.paths(lambda: self._scheme(call))

    def _explore(self, call: int, step: int, number: int) -> PhaseOfAny:
        single: list[bool] = []

        def run() -> None:
            scheme = self._scheme(call)
            phase = scheme.phases[number]
            single.append(isinstance(phase.steps, int))
            operations, again = self.world.twice(lambda: _operations(phase, step))
            for operation in operations:
                _check(self.world, scheme, operation)
            if not identical(self.world, operations, again):
                raise UnsupportedError(IMPURE)

        paths = self.world.paths(run)
        return PhaseOfAny(self.names[number], tuple(paths), all(single))

    def instances(self, name: str, call: int, number: int, step: int) -> list[Instance]:
        """The operations of one step of phase `number`, in program order, merged over its paths."""
        world = self.world

        def run() -> tuple[int, tuple[Operation, ...]]:
            phase = self._scheme(call).phases[number]
            return phase.steps, _operations(phase, step)

        results = [world.follow(path, run) for path in self.phases[number].paths]
        steps = world.term(_merged(world, [(condition, phase_steps) for condition, (phase_steps, _) in results]))
        at, in_call = world.term(step), world.term(call)
        inside = z3.And(at >= 0, at < steps)
        along = [(condition, operations) for condition, (_, operations) in results]
        return [
            Instance(f"{name}.{position}", Site(number, position), in_call, at, operation, z3.simplify(z3.And(inside, happens)))
            for position, (happens, operation) in enumerate(spine(world, along))
        ]

    def value(self, call: int, read: Callable[[Scheme], T]) -> T:
        """Something of the scheme as one call builds it, merged over the paths of building and reading it."""
        world = self.world

        def run() -> T:
            return read(self._scheme(call))

        return _merged(world, [world.follow(path, run) for path in world.paths(run)])


def _merged(world: World, results: list[tuple[Term, T]]) -> T:
    """The results of all feasible paths as one; the last one needs no condition."""
    if len({shape(result) for _, result in results}) != 1:
        raise UnsupportedError("what a scheme promises has another shape on some path: only its numbers may differ")
    *others, (_, last) = results
    return reduce(lambda rest, result: merge(world, result[0], result[1], rest), reversed(others), last)


def _operations(phase: Phase, step: int) -> tuple[Operation, ...]:
    operations = tuple(phase.step(step))
    for operation in operations:
        if not isinstance(operation, Operation):
            raise UnsupportedError(f"a step of phase {phase.name!r} yields {operation!r}, which is no operation")
    return operations


def _check(world: World, scheme: Scheme, operation: Operation) -> None:
    """Raises UnsupportedError where an operation's rows are not numbers of rows in buffers that the scheme lists."""
    for rows in (*reads(operation), *writes(operation)):
        if not all(_is_number(number) for number in (rows.slot, rows.start, rows.count)):
            raise UnsupportedError(f"{_place(operation, rows)}: slot, start and count must be integers, not truths of conditions")
        listed = [buffer for buffer in scheme.buffers if buffer.name == rows.buffer.name]
        if len(listed) != 1 or not identical(world, listed[0], rows.buffer):
            wrong = "lists with other sizes" if len(listed) == 1 else f"lists {len(listed)} times"
            raise UnsupportedError(f"{_place(operation, rows)}, which the scheme {wrong}: list each buffer once, as it is used")


def _is_number(value: object) -> bool:
    return isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool))


def _place(operation: Operation, rows: Rows) -> str:
    return f"a {type(operation).__name__} touches rows of buffer {rows.buffer.name!r}"
