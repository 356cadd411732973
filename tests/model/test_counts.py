"""The counts of the library's schemes against what their steps issue, one by one."""

from collections import Counter
from itertools import product

import pytest

from kvstage_model.counts import BOUND, counts
from kvstage_model.library import COPY, LIBRARY, usual_chunk
from kvstage_model.operations import Copy, Gather, HostCopy, Scatter, SyncEvent, SyncStream
from kvstage_model.parameters import SchemeFunction, declared, small_values
from kvstage_model.runs import PagedRows
from kvstage_model.scheme import Direction
from kvstage_model.tallies import ONCE, TALLIES
from kvstage_model.trace import unroll

TABLES = ((3, 0, 1, 5, 4), (2, 3, 4, 5, 0))
TRANSFERS = [
    PagedRows(table.__getitem__, 6, size, start, stop)
    for table, size, start, stop in product(TABLES, (1, 3), range(4), range(15))
    if start <= stop <= size * 5
]


def test_every_scheme_of_the_library_is_bound() -> None:
    assert BOUND.keys() == LIBRARY.keys()


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("direction", Direction)
def test_the_counts_are_those_of_the_steps(name: str, direction: Direction) -> None:
    function = LIBRARY[name].read if direction is Direction.READ else LIBRARY[name].write
    wanted = {parameter.name for parameter in declared(function)}
    seen = set()
    for rows, slots, most in product(TRANSFERS, (1, 3), (1, 4)):
        options = {"rows": rows, "slots": slots, "most": most, "chunk": usual_chunk(rows)}
        scheme = function(**{key: options[key] for key in wanted})
        kinds: Counter[type] = Counter()
        moved = taken = 0
        for each in unroll([scheme]):
            if each.phase != "caller":
                operation = each.operation
                kinds[type(operation)] += 1
                if isinstance(operation, Copy | Gather | Scatter):
                    moved += operation.source.count
                if isinstance(operation, HostCopy):
                    taken += operation.source.count
        found = counts(name, direction, rows, slots=slots, most=most)
        assert found.copies == kinds[Copy]
        assert found.waits == kinds[SyncStream] + kinds[SyncEvent]
        assert found.launches == kinds[Gather] + kinds[Scatter]
        assert (found.moved, found.taken) == (moved, taken)
        seen.add(found)
    assert len(seen) > 5


WAITING = (SyncStream, SyncEvent)


def test_copies_between_pools_are_counted_too() -> None:
    assert {COPY.read, COPY.write} <= TALLIES.keys()
    assert TALLIES.keys() == ONCE.keys()


@pytest.mark.parametrize("function", TALLIES, ids=lambda function: function.__name__)
def test_a_tally_is_what_small_calls_issue(function: SchemeFunction) -> None:
    """By kind, and in all: a copy, kernel or wait that no tally names would be one too many."""
    calls = set()
    for values in small_values(declared(function), 3):
        stated = Counter({named.kind: 1 for named in ONCE[function]})
        for named, steps in TALLIES[function].items():
            first, past = steps(**values)
            stated[named.kind] += past - first
        issued = [each.operation for each in unroll([function(**values)]) if each.phase != "caller"]
        counting = [type(operation) for operation in issued if isinstance(operation, (Copy, Gather, Scatter, *WAITING))]
        assert Counter(counting) == +stated
        calls.add(len(counting))
    assert len(calls) > 1
