"""What an operation of a scheme must be made of before the prover may speak of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import get_args

import z3

from ..language.buffers import Access, Buffer, Paged, Rows
from ..language.operations import Aim, Event, Operation, QueryEvent, event_of, reads, writes
from ..language.ranges import ANSWER
from ..language.scheme import Scheme, Session
from .errors import UnsupportedError
from .index import Index
from .path_merging import identical
from .world import World
from .z3_terms import Term

MOST_OPERATIONS = 100
"""Operations of one step. Of more, the pairs are too many to ask about."""


def bounded(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The operations of a step. Raises UnsupportedError if they don't end soon."""
    for number, operation in enumerate(operations):
        if number == MOST_OPERATIONS:
            raise UnsupportedError(
                f"a step yields more than {MOST_OPERATIONS} operations: let the scheme's own steps be the loop, each with few"
            )
        yield operation


def check_operation(world: World, scheme: Scheme, operation: Operation) -> None:
    """Raises UnsupportedError if an operation's rows are not numbers of rows in buffers that the scheme lists."""
    for field in fields(operation):
        if isinstance(getattr(operation, field.name), list):
            raise UnsupportedError(f"a {type(operation).__name__} whose {field.name} is a list, which may change: make it a tuple")
    for access in (*reads(operation), *writes(operation)):
        if type(access) not in (Rows, Paged) or type(access.buffer) is not Buffer:
            raise UnsupportedError(
                f"a {type(operation).__name__} of rows of a class of its own: use Rows, Paged and Buffer themselves"
            )
        numbers = (access.first, access.count) if isinstance(access, Paged) else (access.slot, access.start, access.count)
        if not all(_is_number(number) for number in numbers):
            raise UnsupportedError(f"{_place(operation, access)}: slot, start and count must be integers, not truths of conditions")
        listed = [buffer for buffer in scheme.buffers if buffer.name == access.buffer.name]
        if len(listed) != 1 or not identical(world, listed[0], access.buffer):
            wrong = "lists with other sizes" if len(listed) == 1 else f"lists {len(listed)} times"
            raise UnsupportedError(f"{_place(operation, access)}, which the scheme {wrong}: list each buffer once, as it is used")
    aim = getattr(operation, "aim", None)
    if isinstance(aim, Aim) and aim.phase not in (None, *(phase.name for phase in scheme.phases)):
        phases = ", ".join(phase.name for phase in scheme.phases)
        raise UnsupportedError(f"the aim of a {type(operation).__name__} names phase {aim.phase!r}: there are {phases}")
    event = event_of(operation)
    if event is not None and not _is_number(event.index):
        raise UnsupportedError(
            f"a {type(operation).__name__} of event {event.name!r}: its index must be an integer, not the truth of a condition"
        )


def check_as_yielded(operation: Operation) -> None:
    """Raises UnsupportedError if an operation, or an event of it, is not as a scheme may make it."""
    if type(operation) not in get_args(Operation):
        raise UnsupportedError(f"a {type(operation).__name__} is a kind of operation of its own: yield those of the language")
    event = event_of(operation)
    if event is not None and (type(event) is not Event or type(event.call) is not int or event.call != 0):
        raise UnsupportedError(
            f"a {type(operation).__name__} of event {event.name!r} says of which call it is: leave `call` out, it is the model's; "
            "a scheme whose events don't outlive a call says fresh_events=True"
        )


def check_scheme(scheme: object) -> None:
    """Raises UnsupportedError if a scheme is of a class of its own, whose parts may be others than those that run."""
    if type(scheme) not in (Scheme, Session):
        kind = type(scheme).__name__
        raise UnsupportedError(
            f"the scheme function returns a {kind}: return a Scheme or a Session itself, with no part overridden"
        )
    if isinstance(scheme, Scheme) and not all(type(buffer) is Buffer for buffer in scheme.buffers):
        raise UnsupportedError(f"scheme {scheme.name!r} lists a buffer of a class of its own: use Buffer itself")


def check_answers(world: World, step: int, operations: Sequence[Operation]) -> None:
    """Raises UnsupportedError if the answer of a query is anything but a flag of this step, or of another query too.

    A driver answers each query anew: an answer that follows from another number would rule out what may happen.
    """
    answers = [operation.answer for operation in operations if isinstance(operation, QueryEvent)]
    for number, answer in enumerate(answers):
        if not _is_flag(answer, world.term(step)):
            raise UnsupportedError("the answer of a QueryEvent must be that of a parameter of type Flags in the step of the query")
        if any(identical(world, answer, other) for other in answers[:number]):
            raise UnsupportedError("two queries of a step share one answer: declare a parameter of type Flags for each")


def flags_asked(operations: Sequence[Operation]) -> frozenset[str]:
    """The names of the flags that queries take their answers from. The answers must have been checked."""
    answers: list[object] = [operation.answer for operation in operations if isinstance(operation, QueryEvent)]
    return frozenset(answer.term.decl().name() for answer in answers if isinstance(answer, Index))


def check_flags_of_phases(phases: Iterable[tuple[str, frozenset[str]]]) -> None:
    """Raises UnsupportedError if queries of two phases take their answers from the same flags.

    Step i of one phase and step i of another are asked at different moments, so a driver may answer them differently.
    """
    asked: dict[str, str] = {}
    for phase, names in phases:
        for name in sorted(names):
            if name in asked:
                raise UnsupportedError(
                    f"queries of the phases {asked[name]!r} and {phase!r} share the answers of {name.removesuffix(ANSWER)!r}: "
                    "declare another parameter of type Flags for one of them"
                )
            asked[name] = phase


def _is_flag(answer: object, step: Term) -> bool:
    term = answer.term if isinstance(answer, Index) else step
    unknown = z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED and term.num_args() == 2
    return unknown and term.decl().name().endswith(ANSWER) and bool(term.arg(1).eq(step))


def _is_number(value: object) -> bool:
    return isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool))


def _place(operation: Operation, access: Access) -> str:
    return f"a {type(operation).__name__} touches rows of buffer {access.buffer.name!r}"
