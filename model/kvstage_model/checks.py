"""What an operation of a scheme must be made of before the prover may speak of it."""

from .merge import identical
from .operations import Access, Operation, Paged, QueryEvent, event_of, reads, writes
from .scheme import Scheme
from .symbolic import Index, UnsupportedError
from .world import World


def check_operation(world: World, scheme: Scheme, operation: Operation) -> None:
    """Raises UnsupportedError where an operation's rows are not numbers of rows in buffers that the scheme lists."""
    for access in (*reads(operation), *writes(operation)):
        numbers = (access.first, access.count) if isinstance(access, Paged) else (access.slot, access.start, access.count)
        if not all(_is_number(number) for number in numbers):
            raise UnsupportedError(f"{_place(operation, access)}: slot, start and count must be integers, not truths of conditions")
        listed = [buffer for buffer in scheme.buffers if buffer.name == access.buffer.name]
        if len(listed) != 1 or not identical(world, listed[0], access.buffer):
            wrong = "lists with other sizes" if len(listed) == 1 else f"lists {len(listed)} times"
            raise UnsupportedError(f"{_place(operation, access)}, which the scheme {wrong}: list each buffer once, as it is used")
    if isinstance(operation, QueryEvent) and not _is_number(operation.answer):
        raise UnsupportedError("the answer of a QueryEvent must be 1 or 0, from a parameter of type Flags")
    event = event_of(operation)
    if event is not None and not _is_number(event.index):
        raise UnsupportedError(
            f"a {type(operation).__name__} of event {event.name!r}: its index must be an integer, not the truth of a condition"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool))


def _place(operation: Operation, access: Access) -> str:
    return f"a {type(operation).__name__} touches rows of buffer {access.buffer.name!r}"
