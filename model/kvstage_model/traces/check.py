"""Checks a trace against a scheme: the first operation that is not the scheme's, the first event that comes too early,
and two accesses that nothing keeps apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from ..language.buffers import Paged
from ..language.operations import Later, Operation, QueryEvent, RecordEvent, reads, writes
from ..language.scheme import CALLER, Scheme
from ..ordering import missing_waits
from ..ordering.axioms import AXIOMS, Moment, edges, own
from ..ordering.program import describe, unrolling_call
from ..ordering.races import MOMENTS, HappensBefore, Race, races
from ..ordering.trace import Trace, TraceEvent
from .errors import EmptyTraceError, TraceError, TraceTooLargeError
from .matching import Names, departure, key

MOST_RUNS = 1200
"""Operations and runs of rows in the largest program that is checked: every two that touch rows are compared."""
NOT_YET = 20
"""What a query that said "not yet" counts for: each is put into the order of all others by itself."""
AHEAD = 20
"""How many operations of a scheme are looked at after those that can be compared, to say what is missing."""


@dataclass(frozen=True, eq=False)
class Violation:
    """What a trace does that its scheme, or an axiom, does not allow: the operation's number, and what is wrong, in words.

    With a `race`, the operation is the later one of its two.
    """

    index: int
    lines: tuple[str, ...]
    race: Race | None = None


def check(trace: Trace, schemes: Scheme | Sequence[Scheme]) -> tuple[Violation, ...]:
    """All that is wrong with a trace of these calls; of one scheme, if every call was of the same. At most one of each kind.

    A cut trace may end in the middle of what happens, but its program must be whole. What the caller does (phase
    "caller") is not the scheme's, and may be anything that keeps clear of the scheme's accesses. Raises EmptyTraceError,
    TraceTooLargeError, and TraceError if the calls are not as many as the schemes.
    """
    if not trace.program or not trace.events:
        raise EmptyTraceError("the trace is empty: nothing was issued, or nothing has happened, so it can't show anything")
    runs = sum(_runs(issued.operation) for issued in trace.program)
    if runs > MOST_RUNS:
        raise TraceTooLargeError(
            f"the trace has {runs} operations and runs of rows, and up to {MOST_RUNS} are checked: take a smaller one"
        )
    return (*_departures(trace, schemes), *_too_early(trace), *_racing(trace))


def _runs(operation: Operation) -> int:
    accesses = (*reads(operation), *writes(operation))
    refused = isinstance(operation, QueryEvent) and not operation.answer
    return (NOT_YET if refused else 1) + sum(access.count if isinstance(access, Paged) else 1 for access in accesses)


def _departures(trace: Trace, schemes: Scheme | Sequence[Scheme]) -> Iterator[Violation]:
    """The first operation that is not the scheme's, call by call."""
    calls = trace.program[-1].call + 1
    listed = [schemes] * calls if isinstance(schemes, Scheme) else schemes
    if len(listed) != calls:
        raise TraceError(f"the trace has {calls} calls, and {len(listed)} schemes were given for them")
    numbers: list[list[int]] = [[] for _ in listed]
    for number, issued in enumerate(trace.program):
        if issued.phase != CALLER:
            numbers[issued.call].append(number)
    names = Names()
    for call, own_numbers in enumerate(numbers):
        names.forget(listed[call].result)
        wanted = takewhile(lambda issued: issued.phase != CALLER, unrolling_call(listed[call], call))  # the caller's come last
        compared = list(islice(wanted, len(own_numbers) + AHEAD))  # a short trace may name a long scheme
        found = departure([trace.program[number] for number in own_numbers], compared, names)
        if found is not None:
            at = own_numbers[found.index] if found.index < len(own_numbers) else len(trace.program)
            yield Violation(at, (f"operation {at}: {found.words}",))
            return


def _too_early(trace: Trace) -> Iterator[Violation]:
    """The first event that comes before another one that an axiom puts before it, or does not let happen so."""
    order = HappensBefore(trace.program)
    if not order.possible:
        yield Violation(
            0, ("a query answers 'not yet' where what it asks for has ended, or is awaited: no run can give that answer",)
        )
    place = order.too_early([(event.index, event.moment) for event in trace.events])
    if place is None:
        return
    event, happened = trace.events[place], {(each.index, each.moment) for each in trace.events[:place]}
    moments = [(index, moment) for index in range(len(trace.program)) for moment in (Moment.BEGIN, Moment.END)]
    late = [
        (index, moment)
        for index, moment in moments
        if (index, moment) not in happened and (index, moment) != (event.index, event.moment)
        if order.ordered(index, moment, event.index, event.moment)
    ]
    told = [(_axioms(trace, index, moment, event), index, moment) for index, moment in late]
    axioms, index, moment = min(told, key=lambda each: len(each[0]) or len(AXIOMS))  # what an axiom says by itself, if any does
    rules = " and ".join(f"{axiom} rules out ({AXIOMS[axiom]})" for axiom in axioms) or "the axioms together rule out"
    first, second = (describe(trace.program[number]) for number in (event.index, index))
    words = f"operation {event.index}: [{first}] {event.moment.value}s before [{second}] {moment.value}s, which {rules}"
    yield Violation(event.index, (words,))


def _axioms(trace: Trace, index: int, moment: Moment, event: TraceEvent) -> list[str]:
    """The axioms that put the one moment before the other by a single edge, or by the operation's own order; else none."""
    mine, other = trace.program[event.index].operation, trace.program[index].operation
    if index == event.index:
        return [each.axiom for each in own(mine) if (each.earlier, each.later) == (moment, event.moment)]
    if index > event.index:
        return []
    between = [issued.operation for issued in trace.program[index + 1 : event.index]]
    for edge in edges(other, mine):
        superseded = edge.last_record and any(_records_again(other, operation) for operation in between)
        if edge.when and not superseded and _forces(other, moment, edge.earlier) and _forces(mine, edge.later, event.moment):
            issue = isinstance(mine, Later) and edge.later is Moment.ISSUE
            return [edge.axiom, "A2"] if issue else [edge.axiom]
    return []


def _records_again(first: Operation, second: Operation) -> bool:
    return isinstance(first, RecordEvent) and isinstance(second, RecordEvent) and key(first.event) == key(second.event)


def _forces(operation: Operation, earlier: Moment, later: Moment) -> bool:
    """Whether the one moment of an operation never comes after the other one: the host's begins when it is issued."""
    at_once = not isinstance(operation, Later) and Moment.END not in (earlier, later)
    return at_once or MOMENTS.index(earlier) <= MOMENTS.index(later)


def _racing(trace: Trace) -> Iterator[Violation]:
    """Two accesses to a common row that may overlap, the order that is missing, and waits that would supply it."""
    race = next(races(trace.program), None)
    if race is not None:
        first, second = (describe(trace.program[number]) for number in (race.first, race.second))
        told = f"operations {race.first} and {race.second}: [{first}] and [{second}] touch a common row and may overlap"
        yield Violation(race.second, (told, *missing_waits.lines(trace.program, race)), race)
