"""What the host does in a step of a ring, read off small instances: which operations, of which item, on which slot.

The inductive proof wants the loop without the quotients and remainders that its text is full of. A loop that does not
go round a ring of slots in one of the ways known here is UNSUPPORTED: nothing is guessed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from kvstage_model.language.buffers import Memory, Rows
from kvstage_model.language.operations import Copy, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream, event_of, stream_of
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import Runs, by_row
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.symbolic.errors import UnsupportedError

T = TypeVar("T")

MOST_SLOTS, MOST_ITEMS = 4, 6
"""The largest instance that a ring is read off; all smaller ones count too."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A number that lies so many rounds of the ring, and so many `more`, from another one."""

    rounds: int = 0
    more: int = 0

    def of(self, number: int, slots: int) -> int:
        """The number that lies there."""
        return number + self.rounds * slots + self.more


STEP = Offset()
"""The number of the step itself."""


@dataclass(frozen=True, slots=True)
class Act:
    """An operation of every step whose `item` exists, on the slot of that item, or one that lies `aside` of it."""

    kind: type[Operation]
    item: Offset = STEP
    aside: int = 0


@dataclass(frozen=True, slots=True)
class Ring:
    """The acts of a step in order, the number of steps for so many items, and whether the call waits at its end."""

    direction: Direction
    acts: tuple[Act, ...]
    steps: Offset
    waits_at_end: bool

    def place(self, kind: type[Operation]) -> int:
        """Where in a step an operation stands. One that the ring lacks stands where the host never comes past."""
        return next((place for place, act in enumerate(self.acts) if act.kind is kind), len(self.acts))


@dataclass(frozen=True, slots=True)
class _Seen:
    """An operation of a concrete step. `item` is None if it names none."""

    kind: type[Operation]
    slot: int
    item: int | None


@dataclass(frozen=True, slots=True)
class _Instance:
    """What a concrete scheme issues, step by step."""

    slots: int
    items: int
    scheme: Scheme
    steps: tuple[tuple[_Seen, ...], ...]


def ring_of(function: SchemeFunction) -> Ring:
    """The ring that a scheme function of runs and a number of slots states. Raises UnsupportedError if it states none."""
    sizes = product(range(1, MOST_SLOTS + 1), range(1, MOST_ITEMS + 1))
    instances = [_instance(instance_of(function, slots, items), slots, items) for slots, items in sizes]
    kinds = [seen.kind for seen in max((step for instance in instances for step in instance.steps), key=len)]
    for instance in instances:
        for step in instance.steps:
            there = [seen.kind for seen in step]
            if len(set(there)) != len(there) or there != [kind for kind in kinds if kind in there]:
                raise UnsupportedError("the steps of a ring issue each operation at most once, always in the same order")
    acts = tuple(_fitting(_acts(kind), instances, _does, f"a {kind.__name__}") for kind in kinds)
    if Act(Copy) not in acts:
        raise UnsupportedError("step i of a ring copies item i, by way of slot i % slots")
    steps = _fitting(map(Offset, (0, 0, 1, 1), (0, 1, -1, 0)), instances, _counts, "the number of steps")
    result = instances[0].scheme.result
    assert result is not None, "an instance without a result is refused"
    return Ring(result.direction, acts, steps, _waits_at_end(instances))


def instance_of(function: SchemeFunction, slots: int, items: int) -> Scheme:
    """The scheme for `items` runs of one row, item k in block k of the pool, and so many slots."""
    parameters = declared(function)
    if [parameter.kind for parameter in parameters] != [Runs, int]:
        raise UnsupportedError("a ring takes runs and a number of slots")
    runs = by_row(PagedRows(lambda block: block, max(items, 1), 1, 0, items))
    return function(**dict(zip((parameter.name for parameter in parameters), (runs, slots), strict=True)))


def _instance(scheme: Scheme, slots: int, items: int) -> _Instance:
    if scheme.result is None or scheme.prologue:
        raise UnsupportedError("a ring states its result, and has no prologue")
    issued = [tuple(scheme.step(step)) for step in range(scheme.steps)]
    every = [operation for step in (*issued, scheme.epilogue) for operation in step]
    streams = {stream for operation in every if (stream := stream_of(operation)) is not None}
    events = {event.name for operation in every if (event := event_of(operation)) is not None}
    if len(streams) > 1 or len(events) > 1:
        raise UnsupportedError("a ring has one stream, and one event for each slot")
    return _Instance(slots, items, scheme, tuple(tuple(_seen(operation, slots) for operation in step) for step in issued))


def _seen(operation: Operation, slots: int) -> _Seen:
    match operation:
        case RecordEvent() | SyncEvent():
            return _Seen(type(operation), operation.event.index, None)
        case Copy() | HostCopy():
            staged = [rows for rows in (operation.source, operation.target) if _is_stage(rows, slots)]
            others = [rows for rows in (operation.source, operation.target) if not _is_stage(rows, slots)]
            if len(staged) == 1:
                return _Seen(type(operation), staged[0].slot, others[0].slot + others[0].start)  # one of the two is 0
    raise UnsupportedError(f"a ring does not issue a {type(operation).__name__}, or not between its slots and something else")


def _is_stage(rows: Rows, slots: int) -> bool:
    return rows.buffer.memory is Memory.PINNED and rows.buffer.slots == slots


def _acts(kind: type[Operation]) -> Iterator[Act]:
    """All acts of a kind that are known here, the plain ones first."""
    for aside, rounds, more in product((0, 1, -1), (0, -1), (0, 1, -1)):
        yield Act(kind, Offset(rounds, more), aside)


def _does(act: Act, instance: _Instance) -> bool:
    """Whether an instance performs an act in each step whose item exists, and in no other one."""
    for step, operations in enumerate(instance.steps):
        item = act.item.of(step, instance.slots)
        seen = [(operation.slot, operation.item) for operation in operations if operation.kind is act.kind]
        slot = (item + act.aside) % instance.slots
        if seen not in ([(slot, item)], [(slot, None)]) if 0 <= item < instance.items else seen:
            return False
    return True


def _counts(offset: Offset, instance: _Instance) -> bool:
    return offset.of(instance.items, instance.slots) == len(instance.steps)


def _fitting(known: Iterable[T], instances: list[_Instance], fits: Callable[[T, _Instance], bool], what: str) -> T:
    """The first of the known forms that fits all instances."""
    for form in known:
        if all(fits(form, instance) for instance in instances):
            return form
    raise UnsupportedError(f"{what} follows the steps in none of the ways that this proof knows")


def _waits_at_end(instances: list[_Instance]) -> bool:
    """Whether each call waits for its stream once the steps are done."""
    kinds = {tuple(type(operation) for operation in instance.scheme.epilogue) for instance in instances}
    if kinds not in ({()}, {(SyncStream,)}):
        raise UnsupportedError("a ring waits for its stream at its end, or does nothing there")
    return kinds == {(SyncStream,)}
