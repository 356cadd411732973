"""A scheme in the solver: the operations of any call, phase and step, with their moments and when they exist."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, TypeVar

import z3

from ..language.operations import Operation, RecordEvent, event_of, stream_of
from ..language.parameters import SchemeFunction, declared
from ..language.scheme import Phase, Scheme
from ..ordering.axioms import Moment, same_event
from .arguments import check_layouts, same_in_all_calls, symbolic_arguments
from .errors import UnsupportedError
from .path_merging import merge, merge_paths, shape
from .paths import Path
from .purity import demand_pure
from .well_formed import (
    bounded,
    check_answers,
    check_as_yielded,
    check_flags_of_phases,
    check_operation,
    check_scheme,
    flags_asked,
)
from .world import World
from .z3_terms import Term

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
    def key(self) -> tuple[object, ...]:
        """What tells instances of one model apart."""
        return self.name, self.site.phase, self.site.position, self.call.get_id(), self.step.get_id()

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
    """A phase of the scheme, the paths that any step of it may take, and the flags that its queries take answers from."""

    name: str
    paths: tuple[Path, ...]
    single: bool
    asked: frozenset[str]


class SchemeModel:
    """A scheme function with symbolic arguments. All its instances live in one world.

    `between` keeps what the axioms say of two instances, which are in many windows together.
    """

    def __init__(self, function: SchemeFunction) -> None:
        demand_pure(function)
        self.world = World()
        self.function = function
        self.parameters = declared(function)
        self._same = same_in_all_calls(function)
        check_layouts(function, self._same)
        self._arguments: dict[int, dict[str, Any]] = {}
        self._steps: dict[tuple[int, int, int], list[tuple[Term, Operation]]] = {}
        self._kept: list[Term] = []  # keeps the terms alive whose ids are keys
        self._one_stream: dict[str, bool] = {}
        self.between: dict[tuple[object, ...], list[Term]] = {}
        call, step = self.world.integer("any call"), self.world.integer("any step")
        schemes = [self.world.follow(path, lambda: self._scheme(call))[1] for path in self._build_paths(call)]
        for scheme in schemes:
            demand_pure(scheme)
        names = {tuple(phase.name for phase in scheme.phases) for scheme in schemes}
        if len(names) != 1:
            raise UnsupportedError(f"the phases of a scheme depend on its arguments: {sorted(names)}")
        (self.names,) = names
        if len(set(self.names)) < len(self.names):
            raise UnsupportedError(f"two phases of a scheme have one name: {', '.join(self.names)}")
        self.phases = tuple(self._explore(call, step, number) for number in range(len(self.names)))
        check_flags_of_phases((phase.name, phase.asked) for phase in self.phases)

    def _scheme(self, call: int) -> Scheme:
        scheme = self.function(**self._arguments_in(call))
        check_scheme(scheme)
        return scheme

    def _arguments_in(self, call: int) -> dict[str, Any]:
        """The symbolic arguments of one call, the same whenever they are asked for."""
        term = self.world.term(call)
        if term.get_id() not in self._arguments:
            self._kept.append(term)
            self._arguments[term.get_id()] = symbolic_arguments(self.world, self.parameters, call, self._same)
        return self._arguments[term.get_id()]

    def _build_paths(self, call: int) -> list[Path]:
        return self.world.paths(lambda: self._scheme(call))

    def _explore(self, call: int, step: int, number: int) -> PhaseOfAny:
        single: list[bool] = []
        asked: set[str] = set()

        def run() -> None:
            scheme = self._scheme(call)
            phase = scheme.phases[number]
            steps: object = phase.steps
            single.append(isinstance(steps, int) and steps == 1)
            operations = _operations(scheme, phase, call, step)
            for operation in operations:
                check_operation(self.world, scheme, operation)
            check_answers(self.world, step, operations)
            asked.update(flags_asked(operations))

        paths = self.world.paths(run)
        return PhaseOfAny(self.names[number], tuple(paths), all(single), frozenset(asked))

    def instances(self, name: str, call: int, number: int, step: int) -> list[Instance]:
        """The operations of one step of phase `number`, in program order, merged over its paths."""
        in_call, at = self.world.term(call), self.world.term(step)
        key = (number, in_call.get_id(), at.get_id())
        if key not in self._steps:
            self._kept += [in_call, at]
            self._steps[key] = self._step(call, number, step)
        return [
            Instance(f"{name}.{position}", Site(number, position), in_call, at, operation, exists)
            for position, (exists, operation) in enumerate(self._steps[key])
        ]

    def _step(self, call: int, number: int, step: int) -> list[tuple[Term, Operation]]:
        world = self.world

        def run() -> tuple[int, tuple[Operation, ...]]:
            scheme = self._scheme(call)
            phase = scheme.phases[number]
            return phase.steps, _operations(scheme, phase, call, step)

        results = [world.follow(path, run) for path in self.phases[number].paths]
        steps = world.term(_merged(world, [(condition, phase_steps) for condition, (phase_steps, _) in results]))
        inside = z3.And(world.term(step) >= 0, world.term(step) < steps)
        merged = merge_paths(world, [(condition, operations) for condition, (_, operations) in results])
        return [(z3.simplify(z3.And(inside, happens)), operation) for happens, operation in merged]

    def on_one_stream(self, record: Operation) -> bool:
        """Whether all records of an event are on one stream, so that an earlier one has ended before the last one has.

        Events of one name are told apart by their index if two records of it on two streams provably differ in it.
        """
        event = event_of(record)
        assert event is not None, "only a record has an edge that depends on its being the last one"
        if event.name not in self._one_stream:
            self._one_stream[event.name] = not any(self._may_be_one(a, b) for a, b in self._records(event.name))
        return self._one_stream[event.name]

    def _records(self, name: str) -> list[tuple[Instance, Instance]]:
        """All pairs of records of an event on different streams, in any two steps of any two calls."""
        world = self.world
        call, later, step, other = (world.integer(word) for word in ("call a", "call b", "step a", "step b"))
        firsts = [i for n in range(len(self.phases)) for i in self.instances("a", call, n, step)]
        seconds = [i for n in range(len(self.phases)) for i in self.instances("b", later, n, other)]

        def is_record(i: Instance) -> bool:
            return isinstance(i.operation, RecordEvent) and i.operation.event.name == name

        pairs = product(filter(is_record, firsts), filter(is_record, seconds))
        return [(a, b) for a, b in pairs if stream_of(a.operation) != stream_of(b.operation)]

    def _may_be_one(self, first: Instance, second: Instance) -> bool:
        mine, other = event_of(first.operation), event_of(second.operation)
        if mine is None or other is None:
            return False
        return not self.world.impossible(first.exists, second.exists, self.world.formula(same_event(mine, other)))

    def arguments_of(self, call: int, read: Callable[..., T]) -> T:
        """Something of the arguments of one call, merged over the paths of reading it."""

        def run() -> T:
            return read(**self._arguments_in(call))

        return _merged(self.world, [self.world.follow(path, run) for path in self.world.paths(run)])

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


def _operations(scheme: Scheme, phase: Phase, call: int, step: int) -> tuple[Operation, ...]:
    operations = tuple(bounded(phase.step(step)))
    for operation in operations:
        if not isinstance(operation, Operation):
            raise UnsupportedError(f"a step of phase {phase.name!r} yields {operation!r}, which is no operation")
        check_as_yielded(operation)
    return tuple(scheme.in_call(operation, call) for operation in operations)
