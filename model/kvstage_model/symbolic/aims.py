"""Where the other half of a wait is looked for: the steps whose records, releases or work it is meant for.

A scheme may say it, as the `aim` of a wait. If it does not, the step of the same number is looked at in each other phase that
does what the wait waits for. Whatever is found is only put into a window: a hint, never trusted.
"""

from collections.abc import Iterator

import z3

from ..language.operations import (
    Acquire,
    Aim,
    OnStream,
    Operation,
    RecordEvent,
    Release,
    SyncEvent,
    SyncStream,
    WaitEvent,
    reads,
    stream_of,
    writes,
)
from .path_merging import identical
from .scheme_model import Instance, SchemeModel
from .z3_terms import Term

Wait = SyncEvent | WaitEvent | SyncStream | Acquire
"""What has an aim."""
Place = tuple[int, Term]
"""A phase, by its number, and one of its steps."""


def aimed_at(model: SchemeModel, instance: Instance) -> list[Place]:
    """The steps that the waits of an instance's step are meant for."""
    place = instance.site.phase, instance.step
    return [each for wait in _waits(model, instance.call, place) for each in _targets(model, wait.operation, place)]


def aiming_at(model: SchemeModel, instance: Instance) -> list[Place]:
    """The steps whose waits are meant for an instance's step, if they are as far from it as waits of its own number would be."""
    phase, step, found = instance.site.phase, instance.step, []
    for number in range(len(model.names)):
        for wait in _waits(model, instance.call, (number, step)):
            meant = (at for aimed, at in _targets(model, wait.operation, (number, step)) if aimed == phase)
            found += [(number, z3.simplify(step - (at - step))) for at in meant]
    return found


def distances(model: SchemeModel, instance: Instance) -> list[int]:
    """How far from a step the steps of its own loop lie that its waits are meant for."""
    return [distance for _, distance in _within_its_loop(model, instance)]


def distances_for(model: SchemeModel, reader: Instance) -> list[int]:
    """The same, of the waits in the reader's step that hold up the reader itself.

    A wait for a stream that has no aim may be meant for the step before, if nothing in the reader's own step is what it reads.
    """
    agent = stream_of(reader.operation) if isinstance(reader.operation, OnStream) else None
    waits = [(wait, distance) for wait, distance in _within_its_loop(model, reader) if _earlier(wait, reader)]
    stated = [distance for wait, distance in waits if _holds_up(wait.operation, agent)]
    return [*stated, model.world.index(z3.IntVal(-1, model.world.context))] if _may_read_the_step_before(model, reader) else stated


def _within_its_loop(model: SchemeModel, instance: Instance) -> Iterator[tuple[Instance, int]]:
    place = instance.site.phase, instance.step
    for wait in _waits(model, instance.call, place):
        for phase, step in _targets(model, wait.operation, place):
            if phase == instance.site.phase:
                yield wait, model.world.index(z3.simplify(step - instance.step))


def _may_read_the_step_before(model: SchemeModel, reader: Instance) -> bool:
    issued = _issued(model, reader.call, (reader.site.phase, reader.step))
    earlier = [each.operation for each in issued if _earlier(each, reader)]
    if not any(isinstance(each, SyncStream) and each.aim is None for each in earlier):
        return False
    written = [target for each in earlier for target in writes(each)]
    return not all(any(identical(model.world, read, target) for target in written) for read in reads(reader.operation))


def _earlier(instance: Instance, reader: Instance) -> bool:
    return instance.site.position < reader.site.position


def _holds_up(wait: Operation, agent: str | None) -> bool:
    return wait.stream == agent if isinstance(wait, WaitEvent) else agent is None or isinstance(wait, SyncStream)


def _targets(model: SchemeModel, wait: Operation, place: Place) -> list[Place]:
    """The steps that one wait is meant for, in each phase that does what it waits for."""
    assert isinstance(wait, Wait), "nothing else has an aim"
    phase, step = place
    aim = wait.aim if isinstance(wait.aim, Aim | None) else Aim(wait.aim)
    answering = [number for number in range(len(model.names)) if any(_answers(each, wait) for each in _any(model, number))]
    if aim is None:
        return [(number, step) for number in answering if number != phase]
    if aim.phase is None:
        return [(number, model.world.term(aim.step)) for number in answering]
    return [(model.names.index(aim.phase), model.world.term(aim.step))]


def _issued(model: SchemeModel, call: Term, place: Place) -> list[Instance]:
    phase, step = place
    return model.instances("aim", model.world.index(call), phase, model.world.index(step))


def _waits(model: SchemeModel, call: Term, place: Place) -> Iterator[Instance]:
    return (each for each in _issued(model, call, place) if isinstance(each.operation, Wait))


def _any(model: SchemeModel, phase: int) -> Iterator[Operation]:
    """What any step of a phase issues."""
    call, step = model.world.integer("any call"), model.world.integer("any step")
    return (each.operation for each in model.instances("aim", call, phase, step))


def _answers(operation: Operation, wait: Wait) -> bool:
    """Whether a wait may be for this operation, as far as names tell."""
    if isinstance(wait, SyncStream):
        return isinstance(operation, OnStream) and operation.stream == wait.stream
    if isinstance(wait, Acquire):
        return isinstance(operation, Release) and operation.target.buffer.name == wait.target.buffer.name
    return isinstance(operation, RecordEvent) and operation.event.name == wait.event.name
