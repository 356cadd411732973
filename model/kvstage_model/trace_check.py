"""Checks a trace against a scheme: the first operation that is not the scheme's, the first event that comes too early,
and two accesses that nothing keeps apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import advice
from .axioms import AXIOMS, Moment, edges, own
from .buffers import Paged
from .operations import Operation, QueryEvent, reads, writes
from .races import HappensBefore, Race, races
from .scheme import CALLER, Scheme
from .trace import Trace, TraceEvent, describe, unroll
from .trace_errors import EmptyTraceError, TraceError, TraceTooLargeError
from .trace_match import Names, departure

MOST_RUNS = 1200
"""Operations and runs of rows in the largest program that is checked: every two of them are compared. It takes seconds."""
NOT_YET = 20
"""What a query that said "not yet" counts for: each is put into the order of all others by itself."""


@dataclass(frozen=True, eq=False)
class Violation:
    """What a trace does that its scheme, or an axiom, does not allow: the operation's number, and what is wrong, in words.

    With a `race`, the operation is the later one of its two.
    """

    index: int
    lines: tuple[str, ...]
    race: Race | None = None


def check(trace: Trace, schemes: Scheme | Sequence[Scheme]) -> tuple[Violation, ...]:
    """All that is wrong with a trace of these calls; of one scheme, where every call was of the same. At most one of each kind.

    A cut trace may end in the middle of what happens, but its program must be whole. What the caller does (phase
    "caller") is not the scheme's, and may be anything that keeps clear of the scheme's accesses. Raises EmptyTraceError,
    TraceTooLargeError, and TraceError where the calls are not as many as the schemes.
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
    wanted = unroll(listed)
    for call, own_numbers in enumerate(numbers):
        names.forget(listed[call].result)
        of_scheme = [issued for issued in wanted if issued.call == call and issued.phase != CALLER]
        found = departure([trace.program[number] for number in own_numbers], of_scheme, names)
        if found is not None:
            at = own_numbers[found.index] if found.index < len(own_numbers) else len(trace.program)
            yield Violation(at, (f"operation {at}: {found.words}",))
            return


def _too_early(trace: Trace) -> Iterator[Violation]:
    """The first event that comes before another one that an axiom puts before it, or does not let happen so."""
    order, at = HappensBefore(trace.program), {(event.index, event.moment): place for place, event in enumerate(trace.events)}
    if not order.possible:
        yield Violation(
            0, ("a query answers 'not yet' where what it asks for has ended, or is awaited: no run can give that answer",)
        )
    never = len(trace.events)
    moments = [(index, moment) for index in range(len(trace.program)) for moment in (Moment.BEGIN, Moment.END)]
    for place, event in enumerate(trace.events):
        for index, moment in moments:
            late = at.get((index, moment), never) > place
            if late and order.ordered(index, moment, event.index, event.moment):
                yield Violation(event.index, (_words(trace, event, index, moment),))
                return


def _words(trace: Trace, event: TraceEvent, index: int, moment: Moment) -> str:
    names = " and ".join(_axioms(trace, index, moment, event)) or "the axioms together"
    return (
        f"operation {event.index}: [{describe(trace.program[event.index])}] {event.moment.value}s "
        f"before [{describe(trace.program[index])}] {moment.value}s, which {names}"
    )


def _axioms(trace: Trace, index: int, moment: Moment, event: TraceEvent) -> Iterator[str]:
    """The axiom that puts the one moment before the other, where one does so by itself."""
    if index < event.index:
        rules = edges(trace.program[index].operation, trace.program[event.index].operation)
        found = [each.axiom for each in rules if each.when and each.later in (event.moment, Moment.ISSUE)]
    else:
        found = [each.axiom for each in own(trace.program[index].operation)] if index == event.index else []
    yield from (f"{name} rules out ({AXIOMS[name]})" for name in dict.fromkeys(found[:1]))


def _racing(trace: Trace) -> Iterator[Violation]:
    """Two accesses to a common row that may overlap, the order that is missing, and waits that would supply it."""
    race = next(races(trace.program), None)
    if race is not None:
        first, second = (describe(trace.program[number]) for number in (race.first, race.second))
        told = f"operations {race.first} and {race.second}: [{first}] and [{second}] touch a common row and may overlap"
        yield Violation(race.second, (told, *advice.lines(trace.program, race)), race)
